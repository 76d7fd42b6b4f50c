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

export const NAME_PARAMETER: Parameter = path('name', 'Name of the object.');
export const NAMESPACE_PARAMETER: Parameter = path('namespace', 'Namespace of the object.');

export const LIST_PARAMETERS: readonly Parameter[] = [
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

export const CREATE_PARAMETERS: readonly Parameter[] = [
  DRY_RUN,
  FIELD_MANAGER,
  FIELD_VALIDATION,
  PRETTY,
];

export const UPDATE_PARAMETERS: readonly Parameter[] = CREATE_PARAMETERS;

export const PATCH_PARAMETERS: readonly Parameter[] = [
  ...CREATE_PARAMETERS,
  query('force', 'boolean', 'Takes over fields that others manage; apply patches only.'),
];

export const DELETE_PARAMETERS: readonly Parameter[] = [
  DRY_RUN,
  query('gracePeriodSeconds', 'integer', 'How long the object may take to end.'),
  query('orphanDependents', 'boolean', 'Older form of propagationPolicy.'),
  query(
    'propagationPolicy',
    'string',
    'What becomes of the objects it owns: Orphan, Background or Foreground.',
  ),
];

export const LOG_PARAMETERS: readonly Parameter[] = [
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
