import { APIEXTENSIONS_V1 } from '../generated/apiextensions-v1.ts';
import { APPS_V1 } from '../generated/apps-v1.ts';
import { AUTHENTICATION_V1 } from '../generated/authentication-v1.ts';
import { AUTHORIZATION_V1 } from '../generated/authorization-v1.ts';
import { AUTOSCALING_V1 } from '../generated/autoscaling-v1.ts';
import { COORDINATION_V1 } from '../generated/coordination-v1.ts';
import { CORE_V1 } from '../generated/core-v1.ts';
import { META } from '../generated/meta.ts';
import { POLICY_V1 } from '../generated/policy-v1.ts';
import { RBAC_V1 } from '../generated/rbac-v1.ts';
import { SCHEDULING_V1 } from '../generated/scheduling-v1.ts';
import type { JsonSchema } from '../schema/json-schema.ts';
import { SchemaLibrary } from '../schema/schema-library.ts';

let published: ReadonlyMap<string, JsonSchema> | undefined;
let library: SchemaLibrary | undefined;

/** The schemas of the built-in kinds as OpenAPI publishes them, by name. Parsed when first asked for. */
export function publishedSchemas(): ReadonlyMap<string, JsonSchema> {
  published ??= new Map(
    [
      META,
      CORE_V1,
      APPS_V1,
      AUTHENTICATION_V1,
      AUTHORIZATION_V1,
      AUTOSCALING_V1,
      POLICY_V1,
      RBAC_V1,
      SCHEDULING_V1,
      COORDINATION_V1,
      APIEXTENSIONS_V1,
    ].flatMap((json) => Object.entries(JSON.parse(json) as Record<string, JsonSchema>)),
  );
  return published;
}

/** The schema of that name with its references followed: what validates and prunes. */
export function linkedSchema(name: string): JsonSchema {
  library ??= new SchemaLibrary(publishedSchemas());
  return library.get(name);
}
