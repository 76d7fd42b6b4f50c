import { Document, isMap, Scalar } from 'yaml';
import { FORMAT as MANIFEST_FORMAT } from '../program/installation.ts';

/** JSON schema of a value. */
export type ValueSchema = Readonly<Record<string, unknown>>;

export const BOOLEAN_VALUE: ValueSchema = { type: 'boolean' };
export const TEXT_VALUE: ValueSchema = { type: 'string' };
export const OBJECT_VALUE: ValueSchema = { type: 'object' };
/** Labels, annotations. */
export const TEXTS_VALUE: ValueSchema = {
  type: 'object',
  additionalProperties: { type: 'string' },
};
/** Objects. */
export const LIST_VALUE: ValueSchema = { type: 'array', items: { type: 'object' } };

/** A value of a chart, from which its file of values and its schema are made. */
export interface ChartValue {
  /** `image.tag` */
  readonly path: string;
  readonly value: unknown;
  /** A line for users, above the value. */
  readonly comment: string;
  readonly schema: ValueSchema;
}

/** Comments of objects whose values are in several lines of a list of values. */
type Sections = Readonly<Record<string, string>>;

/** Returns the file of the values, with their comments. */
export function valuesText(
  values: readonly ChartValue[],
  header: string,
  sections: Sections,
): string {
  const document = new Document({});
  for (const { path, value, comment } of values) {
    const keys = path.split('.');
    for (let length = 1; length < keys.length; length++) {
      const parent = keys.slice(0, length);
      if (document.hasIn(parent)) continue;
      document.setIn(parent, document.createNode({}));
      const section = sections[parent.join('.')];
      if (section !== undefined) commentOn(document, parent, section, length === 1);
    }
    document.setIn(keys, document.createNode(value));
    commentOn(document, keys, comment, keys.length === 1);
  }
  return `# ${header}\n${document.toString(MANIFEST_FORMAT)}`;
}

function commentOn(
  document: Document,
  path: readonly string[],
  text: string,
  hasSpace: boolean,
): void {
  const parent = path.length === 1 ? document.contents : document.getIn(path.slice(0, -1), true);
  if (!isMap(parent)) throw new TypeError(`${path.join('.')} has no object around it`);
  const last = path.at(-1);
  const pair = parent.items.find(({ key }) => String(key) === last);
  if (!pair) return;
  const key = new Scalar(last);
  key.commentBefore = ` ${text}`;
  key.spaceBefore = hasSpace;
  pair.key = key;
}

interface ObjectSchema {
  type: 'object';
  additionalProperties: false;
  properties: Record<string, ObjectSchema | ValueSchema>;
}

/** Returns the schema of the values: a value that the chart does not have is an error. */
export function valuesSchema(values: readonly ChartValue[], title: string): object {
  const object = (): ObjectSchema => ({
    type: 'object',
    additionalProperties: false,
    properties: {},
  });
  const root = object();
  for (const { path, comment, schema } of values) {
    const keys = path.split('.');
    const name = keys.pop() ?? '';
    let { properties } = root;
    for (const key of keys) {
      const inner = (properties[key] ??= object()) as ObjectSchema;
      ({ properties } = inner);
    }
    properties[name] = { description: comment, ...schema };
  }
  // Helm adds the global values of a chart that has this one as a dependency.
  root.properties['global'] = { type: 'object' };
  return { $schema: 'http://json-schema.org/draft-07/schema#', title, ...root };
}
