import type { ResourceDefinition } from '../resource-definition.ts';
import type { GroupVersionKind } from './components.ts';
import { SHARED_SCHEMAS, componentName, refTo } from './components.ts';

/** What can be done at a path. */
interface PathItem {
  readonly get?: Operation;
  readonly put?: Operation;
  readonly post?: Operation;
  readonly delete?: Operation;
  readonly patch?: Operation;
  readonly parameters: readonly Parameter[];
}

export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Content; readonly required?: true };
  readonly responses: Readonly<Record<string, { description: string; content?: Content }>>;
  readonly 'x-kubernetes-action': Action;
  readonly 'x-kubernetes-group-version-kind': GroupVersionKind;
}

type Content = Readonly<
  Record<string, { readonly schema: { readonly $ref: string } | { readonly type: 'string' } }>
>;

type Action = 'get' | 'list' | 'post' | 'put' | 'patch' | 'delete' | 'deletecollection';

/** What each action is called in an operation's id. */
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

/** The paths of a resource and of its subresources. */
export function pathsOf(definition: ResourceDefinition): Readonly<Record<string, PathItem>> {
  const { group, version, plural, namespaced, review } = definition;
  const root = group ? `/apis/${group}/${version}` : `/api/${version}`;
  const collection = namespaced ? `${root}/namespaces/{namespace}/${plural}` : `${root}/${plural}`;
  const operations = new Operations(definition);
  if (review) return { [collection]: operations.creation() };
  return {
    ...(namespaced && { [`${root}/${plural}`]: operations.everywhere() }),
    [collection]: operations.collection(),
    [`${collection}/{name}`]: operations.object(),
    ...Object.fromEntries(
      operations.subresources().map(([name, item]) => [`${collection}/{name}/${name}`, item]),
    ),
  };
}

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

  /** Of what can only be created. */
  creation(): PathItem {
    return {
      post: this.#operation('post', this.#object, {
        parameters: CREATE_PARAMETERS,
        body: this.#object,
      }),
      parameters: this.#place,
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
    const { status, scale, finalize, binding, eviction, log } = this.#definition.subresources;
    const parameters = [NAME_PARAMETER, ...this.#place];
    const items: [name: string, item: PathItem][] = [];
    if (status)
      items.push(['status', { ...this.#readAndWrite(this.#object, 'Status'), parameters }]);
    if (scale) {
      const kind = { group: 'autoscaling', kind: 'Scale', version: 'v1' };
      items.push([
        'scale',
        { ...this.#readAndWrite(SHARED_SCHEMAS.scale, 'Scale', kind), parameters },
      ]);
    }
    if (finalize) {
      const { put } = this.#readAndWrite(this.#object, 'Finalize');
      items.push(['finalize', { put, parameters }]);
    }
    if (binding) {
      const kind = { group: '', kind: 'Binding', version: 'v1' };
      items.push(['binding', { post: this.#post(SHARED_SCHEMAS.binding, kind), parameters }]);
    }
    if (eviction) {
      const kind = { group: 'policy', kind: 'Eviction', version: 'v1' };
      items.push(['eviction', { post: this.#post(SHARED_SCHEMAS.eviction, kind), parameters }]);
    }
    if (log) {
      const get = this.#operation('get', this.#object, { suffix: 'Log' });
      const content: Content = { 'text/plain': { schema: { type: 'string' } } };
      const responses = { ...get.responses, '200': { description: 'OK', content } };
      items.push([
        'log',
        { get: { ...get, responses }, parameters: [...parameters, ...LOG_PARAMETERS] },
      ]);
    }
    return items;
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
    // A custom kind's scale still goes by the name of the custom kind.
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
        ...(action === 'post' || action === 'put' || action === 'patch'
          ? { '201': { description: 'Created', content: contentOf(answer, [JSON_TYPE]) } }
          : {}),
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

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly description: string;
  readonly required?: true;
  readonly schema: { readonly type: 'string' | 'integer' | 'boolean'; readonly uniqueItems: true };
}

type Type = Parameter['schema']['type'];

const PRETTY = query('pretty', 'string', 'Indents the answer if it is true.');
const DRY_RUN = query('dryRun', 'string', 'All: goes all the way, but leaves nothing behind.');
const FIELD_MANAGER = query('fieldManager', 'string', 'Who makes the change.');
const FIELD_VALIDATION = query(
  'fieldValidation',
  'string',
  'What becomes of fields that are unknown or doubled: Ignore, Warn or Strict.',
);

const NAME_PARAMETER: Parameter = path('name', 'Name of the object.');
const NAMESPACE_PARAMETER: Parameter = path('namespace', 'Namespace of the object.');

const LIST_PARAMETERS: readonly Parameter[] = [
  query('allowWatchBookmarks', 'boolean', 'Whether a watch may send bookmarks.'),
  query('continue', 'string', 'Where the page begins: what the page before said.'),
  query('fieldSelector', 'string', 'Objects whose fields match this.'),
  query('labelSelector', 'string', 'Objects whose labels match this.'),
  query('limit', 'integer', 'How many objects a page has at most.'),
  PRETTY,
  query('resourceVersion', 'string', 'How new the answer must be.'),
  query('resourceVersionMatch', 'string', 'How resourceVersion is meant: Exact or NotOlderThan.'),
  query('sendInitialEvents', 'boolean', 'Whether a watch begins with the objects there are.'),
  query('timeoutSeconds', 'integer', 'When the call ends at the latest.'),
  query('watch', 'boolean', 'Sends changes as they happen instead of a list.'),
];

const CREATE_PARAMETERS: readonly Parameter[] = [DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION, PRETTY];

const UPDATE_PARAMETERS: readonly Parameter[] = CREATE_PARAMETERS;

const PATCH_PARAMETERS: readonly Parameter[] = [
  ...CREATE_PARAMETERS,
  query('force', 'boolean', 'Takes over fields that others manage; apply patches only.'),
];

const DELETE_PARAMETERS: readonly Parameter[] = [
  DRY_RUN,
  query('gracePeriodSeconds', 'integer', 'How long the object may take to end.'),
  query('orphanDependents', 'boolean', 'Older form of propagationPolicy.'),
  query(
    'propagationPolicy',
    'string',
    'What becomes of the objects it owns: Orphan, Background or Foreground.',
  ),
];

const LOG_PARAMETERS: readonly Parameter[] = [
  query('container', 'string', 'Whose log, if the Pod has several containers.'),
  query('follow', 'boolean', 'Goes on as more is printed.'),
  query('limitBytes', 'integer', 'How much is sent at most.'),
  PRETTY,
  query('previous', 'boolean', 'Of the run before the last restart.'),
  query('sinceSeconds', 'integer', 'Nothing older than so many seconds.'),
  query('sinceTime', 'string', 'Nothing from before that time.'),
  query('tailLines', 'integer', 'How many of the last lines.'),
  query('timestamps', 'boolean', 'Begins each line with its time.'),
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
