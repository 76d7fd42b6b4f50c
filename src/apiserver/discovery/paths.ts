import type { ResourceDefinition } from '../objects/resource-definition.ts';
import type { GroupVersionKind } from './components.ts';
import { SHARED_SCHEMAS, componentName, refTo } from './components.ts';
import type { Subresource } from '../objects/subresources.ts';
import { subresourcesOf } from '../objects/subresources.ts';
import { schemaName } from '../schema/builtin-schemas.ts';

interface PathItem {
  readonly get?: Operation;
  readonly put?: Operation;
  readonly post?: Operation;
  readonly delete?: Operation;
  readonly patch?: Operation;
  readonly parameters?: readonly Parameter[] | undefined;
}

interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly Parameter[] | undefined;
  readonly requestBody?: { readonly content: Content; readonly required?: true };
  readonly responses: Readonly<Record<string, { description: string; content?: Content }>>;
  readonly 'x-kubernetes-action': Action;
  readonly 'x-kubernetes-group-version-kind': GroupVersionKind;
}

type Content = Readonly<
  Record<string, { readonly schema: { readonly $ref: string } | { readonly type: 'string' } }>
>;

type Action = 'get' | 'list' | 'post' | 'put' | 'patch' | 'delete' | 'deletecollection';

/** The verb of each action in the operation id. */
const VERBS: Readonly<Record<Action, string>> = {
  get: 'read',
  list: 'list',
  post: 'create',
  put: 'replace',
  patch: 'patch',
  delete: 'delete',
  deletecollection: 'delete',
};

const JSON_TYPE = 'application/json';
const PATCH_TYPES = [
  'application/apply-patch+yaml',
  'application/json-patch+json',
  'application/merge-patch+json',
] as const;
const STRATEGIC_MERGE = 'application/strategic-merge-patch+json';

export function pathsOf(definition: ResourceDefinition): Readonly<Record<string, PathItem>> {
  const { group, version, plural, namespaced, verbs } = definition;
  const root = group ? `/apis/${group}/${version}` : `/api/${version}`;
  const collection = namespaced ? `${root}/namespaces/{namespace}/${plural}` : `${root}/${plural}`;
  const operations = new Operations(definition);
  if (verbs?.join() === 'create') return { [collection]: operations.creation() };
  return {
    ...(namespaced && { [`${root}/${plural}`]: operations.everywhere() }),
    [collection]: served(operations.collection(), verbs),
    [`${collection}/{name}`]: served(operations.object(), verbs),
    ...Object.fromEntries(
      operations.subresources().map(([name, item]) => [`${collection}/{name}/${name}`, item]),
    ),
  };
}

/** The item with the operations of these verbs only. */
function served(item: PathItem, verbs: readonly string[] | undefined): PathItem {
  if (!verbs) return item;
  const { parameters, ...operations } = item;
  const entries = Object.entries(operations).filter(([, { 'x-kubernetes-action': action }]) =>
    verbs.includes(WRITE_VERBS[action] ?? action),
  );
  return { ...Object.fromEntries(entries), parameters };
}

const WRITE_VERBS: Readonly<Partial<Record<Action, string>>> = { post: 'create', put: 'update' };

class Operations {
  readonly #definition: ResourceDefinition;
  readonly #kind: GroupVersionKind;
  readonly #object: string;
  readonly #list: string;
  readonly #place: readonly Parameter[];

  constructor(definition: ResourceDefinition) {
    const { group, version, kind, listKind, namespaced } = definition;
    this.#definition = definition;
    this.#kind = { group, kind, version };
    this.#object = componentName(definition, kind);
    this.#list = componentName(definition, listKind);
    this.#place = namespaced ? [NAMESPACE_PARAMETER] : [];
  }

  everywhere(): PathItem {
    return {
      get: this.#operation('list', this.#list, { suffix: 'ForAllNamespaces' }),
      parameters: LIST_PARAMETERS,
    };
  }

  /** The collection of a kind that can only be created, such as a review. */
  creation(): PathItem {
    return {
      post: this.#operation('post', this.#object, {
        parameters: CREATE_PARAMETERS,
        body: this.#object,
      }),
      // Go's decoder does not keep an empty list.
      ...(this.#place.length > 0 && { parameters: this.#place }),
    };
  }

  collection(): PathItem {
    return {
      ...this.creation(),
      get: this.#operation('list', this.#list, { parameters: LIST_PARAMETERS }),
      delete: this.#operation('deletecollection', SHARED_SCHEMAS.status, {
        parameters: [...LIST_PARAMETERS, ...DELETE_PARAMETERS],
        body: SHARED_SCHEMAS.deleteOptions,
      }),
    };
  }

  object(): PathItem {
    return {
      ...this.#readAndWrite(this.#object, ''),
      delete: this.#operation('delete', SHARED_SCHEMAS.status, {
        parameters: DELETE_PARAMETERS,
        body: SHARED_SCHEMAS.deleteOptions,
      }),
      parameters: [NAME_PARAMETER, ...this.#place],
    };
  }

  subresources(): [name: string, item: PathItem][] {
    const parameters = [NAME_PARAMETER, ...this.#place];
    return subresourcesOf(this.#definition).flatMap((subresource) => {
      const operations = this.#subresource(subresource);
      const own = subresource.name === 'log' ? LOG_PARAMETERS : [];
      return operations
        ? [[subresource.name, { ...operations, parameters: [...parameters, ...own] }]]
        : [];
    });
  }

  /** Returns undefined for connections, which are not described. */
  #subresource({ name, verbs, kind, isOwnKind, isLongRunning }: Subresource): PathItem | undefined {
    const suffix = pascal(name);
    if (name === 'log') {
      const get = this.#operation('get', this.#object, { suffix });
      const content: Content = { 'text/plain': { schema: { type: 'string' } } };
      const responses = { ...get.responses, '200': { description: 'OK', content } };
      return { get: { ...get, responses } };
    }
    if (isLongRunning) return undefined;
    const schema = isOwnKind ? this.#object : schemaName(kind, kind.kind);
    if (verbs.includes('create')) return { post: this.#post(schema, kind) };
    const operations = this.#readAndWrite(schema, suffix, isOwnKind ? undefined : kind);
    return verbs.includes('get') ? operations : { put: operations.put };
  }

  #post(schema: string, kind: GroupVersionKind): Operation {
    return this.#operation('post', schema, {
      parameters: CREATE_PARAMETERS,
      body: schema,
      suffix: kind.kind,
      kind,
    });
  }

  #readAndWrite(
    schema: string,
    suffix: string,
    kind?: GroupVersionKind,
  ): Required<Pick<PathItem, 'get' | 'put' | 'patch'>> {
    // The scale of a custom kind is published under the custom kind, as upstream does.
    const named = kind && !this.#definition.custom ? { suffix, kind } : { suffix };
    return {
      get: this.#operation('get', schema, named),
      put: this.#operation('put', schema, {
        ...named,
        parameters: UPDATE_PARAMETERS,
        body: schema,
      }),
      patch: this.#operation('patch', schema, { ...named, parameters: PATCH_PARAMETERS }),
    };
  }

  #operation(
    action: Action,
    answer: string,
    options: {
      readonly parameters?: readonly Parameter[];
      readonly body?: string;
      readonly suffix?: string;
      readonly kind?: GroupVersionKind;
    },
  ): Operation {
    const { group, version, kind, namespaced, custom } = this.#definition;
    const { parameters, body, suffix = '', kind: servedKind = this.#kind } = options;
    const scope = [
      action === 'deletecollection' ? 'Collection' : '',
      namespaced && suffix !== 'ForAllNamespaces' ? 'Namespaced' : '',
    ].join('');
    const place = `${pascal(group || 'core')}${pascal(version)}`;
    const patchTypes = custom ? PATCH_TYPES : [...PATCH_TYPES, STRATEGIC_MERGE];
    return {
      operationId: `${VERBS[action]}${place}${scope}${kind}${suffix}`,
      tags: [`${(group || 'core').replace(/\.k8s\.io$/, '')}_${version}`],
      ...(parameters && { parameters }),
      ...(action === 'patch' && {
        requestBody: { content: contentOf(SHARED_SCHEMAS.patch, patchTypes), required: true },
      }),
      ...(body !== undefined && {
        requestBody: {
          content: contentOf(body, ['*/*']),
          ...(action !== 'delete' && action !== 'deletecollection' && { required: true }),
        },
      }),
      responses: {
        '200': { description: 'OK', content: contentOf(answer, [JSON_TYPE]) },
        ...((action === 'post' || action === 'put' || action === 'patch') && {
          '201': { description: 'Created', content: contentOf(answer, [JSON_TYPE]) },
        }),
        '401': { description: 'Unauthorized' },
      },
      'x-kubernetes-action': action,
      'x-kubernetes-group-version-kind': servedKind,
    };
  }
}

function contentOf(schema: string, types: readonly string[]): Content {
  return Object.fromEntries(types.map((type) => [type, { schema: refTo(schema) }]));
}

/** `demo.mark8s.io` → `DemoMark8sIo`. */
function pascal(text: string): string {
  return text
    .split(/[.-]/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
}

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly description: string;
  readonly required?: true;
  readonly schema: { readonly type: 'string' | 'integer' | 'boolean'; readonly uniqueItems: true };
}

type Type = Parameter['schema']['type'];

const PRETTY = query('pretty', 'string', 'If true, the response is indented.');
const DRY_RUN = query('dryRun', 'string', 'All: processes the request without persisting it.');
const FIELD_MANAGER = query('fieldManager', 'string', 'Name of the client that makes the change.');
const FIELD_VALIDATION = query(
  'fieldValidation',
  'string',
  'Treatment of unknown and duplicate fields: Ignore, Warn or Strict.',
);

const NAME_PARAMETER: Parameter = path('name', 'Name of the object.');
const NAMESPACE_PARAMETER: Parameter = path('namespace', 'Namespace of the object.');

/** Upstream's description, which scripts look for. */
function selectorText(by: 'fields' | 'labels'): string {
  return `A selector to restrict the list of returned objects by their ${by}. Defaults to everything.`;
}

const LIST_PARAMETERS: readonly Parameter[] = [
  query('allowWatchBookmarks', 'boolean', 'Requests bookmark events from a watch.'),
  query('continue', 'string', 'Continue token of the previous page.'),
  query('fieldSelector', 'string', selectorText('fields')),
  query('labelSelector', 'string', selectorText('labels')),
  query('limit', 'integer', 'Maximum number of objects of a page.'),
  PRETTY,
  query('resourceVersion', 'string', 'Minimum or exact version of the response.'),
  query('resourceVersionMatch', 'string', 'Meaning of resourceVersion: Exact or NotOlderThan.'),
  query('sendInitialEvents', 'boolean', 'If true, a watch starts with the existing objects.'),
  query('timeoutSeconds', 'integer', 'Maximum duration of the call.'),
  query(
    'watch',
    'boolean',
    'Watch for changes to the described resources and return them as a stream of add, update, and remove notifications. Specify resourceVersion.',
  ),
];

const CREATE_PARAMETERS: readonly Parameter[] = [DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION, PRETTY];

const UPDATE_PARAMETERS: readonly Parameter[] = CREATE_PARAMETERS;

const PATCH_PARAMETERS: readonly Parameter[] = [
  ...CREATE_PARAMETERS,
  query('force', 'boolean', 'Takes over fields of other managers; apply patches only.'),
];

const DELETE_PARAMETERS: readonly Parameter[] = [
  DRY_RUN,
  query('gracePeriodSeconds', 'integer', 'Seconds before the object is deleted.'),
  query('orphanDependents', 'boolean', 'Deprecated: use propagationPolicy.'),
  query(
    'propagationPolicy',
    'string',
    'Treatment of owned objects: Orphan, Background or Foreground.',
  ),
];

const LOG_PARAMETERS: readonly Parameter[] = [
  query('container', 'string', 'Name of the container; required if the Pod has several.'),
  query('follow', 'boolean', 'Streams new lines as they are written.'),
  query('limitBytes', 'integer', 'Maximum number of bytes.'),
  PRETTY,
  query('previous', 'boolean', 'Returns the log of the previous container instance.'),
  query('sinceSeconds', 'integer', 'Maximum age of lines, in seconds.'),
  query('sinceTime', 'string', 'Earliest time of lines.'),
  query('tailLines', 'integer', 'Number of lines from the end of the log.'),
  query('timestamps', 'boolean', 'Prefixes each line with its time.'),
];

function query(name: string, type: Type, description: string): Parameter {
  return { name, in: 'query', description, schema: { type, uniqueItems: true } };
}

function path(name: string, description: string): Parameter {
  return {
    name,
    in: 'path',
    description,
    required: true,
    schema: { type: 'string', uniqueItems: true },
  };
}
