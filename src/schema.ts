/**
 * Kinds defined in TypeScript: one definition gives the CRD, the types of its objects and the resource descriptor.
 *
 * @experimental
 * @module
 */
export { customResource } from './crd/custom-resource.ts';
export type {
  CustomObject,
  CustomResource,
  CustomResourceOptions,
  Infer,
  PrinterColumn,
  ScalePaths,
} from './crd/custom-resource.ts';
export {
  anything,
  boolean,
  conditions,
  dateTime,
  embeddedResource,
  enumeration,
  integer,
  intOrString,
  jsonSchema,
  list,
  map,
  nullable,
  number,
  object,
  optional,
  quantity,
  status,
  string,
} from './crd/schema.ts';
export type {
  EmbeddedResource,
  Fields,
  ListSchemaOptions as ListOptions,
  MapOptions,
  NumberOptions,
  ObjectOptions,
  OptionalSchema,
  Schema,
  SchemaNode,
  SchemaOptions,
  StringOptions,
  ValidationRule,
  ValueOf,
  ValueOfFields,
} from './crd/schema.ts';
