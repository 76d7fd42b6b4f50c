import { createHash } from 'node:crypto';
import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import { groupResourceOf } from '../api/resource.ts';
import { lazyTextOf } from '../client/lazy-object.ts';
import { textIn } from '../util/json-value.ts';
import { redactText } from '../util/redact.ts';
import { isRecord } from '../util/values.ts';

/** Resources whose contents are never recorded: Secrets and tokens. */
const ALWAYS = ['secrets', 'serviceaccounts/token', 'tokenreviews.authentication.k8s.io'];

/** Annotations that repeat the contents of an object. */
const COPIES = new Set(['kubectl.kubernetes.io/last-applied-configuration']);

/** First and last characters of JSON objects and lists. */
const BRACKETS = new Set(['{}', '[]']);

const API_PATH =
  /^\/(?:api\/v1|apis\/(?<group>[^/]+)\/[^/]+)(?:\/namespaces\/(?<namespace>[^/]+)(?=\/))?\/(?<plural>[^/?]+)(?:\/(?<name>[^/?]+)(?:\/(?<subresource>[^?]+))?)?(?:\?|$)/;

/** The parts of a path of the API. */
export interface ApiPath {
  readonly group: string;
  readonly plural: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
}

/** Returns the parts of a path, or undefined if it is not one of a resource. */
export function parseApiPath(path: string): ApiPath | undefined {
  const groups = API_PATH.exec(path)?.groups;
  if (!groups) return undefined;
  const { group = '', plural = '', namespace, name, subresource } = groups;
  return { group, plural, namespace, name, subresource };
}

/** Removes the contents of Secrets, tokens and further objects from what is recorded. */
export class Redaction {
  readonly redacted: readonly string[];
  readonly salt: string;
  readonly #redacted: ReadonlySet<string>;

  /** @param further resources, in addition to Secrets and tokens: `configmaps`, `databases.example.com` */
  constructor(salt: string, further: readonly string[] = []) {
    this.salt = salt;
    this.redacted = [...new Set([...ALWAYS, ...further])];
    this.#redacted = new Set(this.redacted);
  }

  /** Returns the JSON of an object of a resource. */
  object(
    resource: { readonly group: string; readonly plural: string },
    object: DeepReadonly<KubernetesObject>,
  ): string {
    if (this.#redacted.has(groupResourceOf(resource))) return JSON.stringify(this.#reduced(object));
    const rest = lazyTextOf(object);
    if (rest === undefined) return JSON.stringify(object);
    const { apiVersion, kind, metadata } = object;
    const eager = JSON.stringify({ apiVersion, kind, metadata });
    return rest === '' ? eager : `${eager.slice(0, -1)},${rest}}`;
  }

  /** Returns the JSON of the body of a request or response; undefined if there is none. */
  body(path: string, given: string): string | undefined {
    const body = given.trim();
    if (body === '') return undefined;
    const target = parseApiPath(path);
    // Logs, and other responses that are no JSON objects, can contain anything.
    const isJson = BRACKETS.has(`${body[0]}${body.at(-1)}`);
    if (!isJson || !target) return JSON.stringify({ hash: this.#hash(body) });
    const { group, plural, subresource } = target;
    const names = [
      groupResourceOf({ group, plural }),
      groupResourceOf({ group, plural: `${plural}/${subresource}` }),
    ];
    if (!names.some((name) => this.#redacted.has(name)))
      return body.includes('\n') ? body.replaceAll(/[\r\n]/g, ' ') : body;
    return JSON.stringify(this.#reduced(JSON.parse(body)));
  }

  #reduced(value: unknown): unknown {
    if (!isRecord(value)) return { hash: this.#hash(value) };
    const { apiVersion, kind, metadata, items, ...rest } = value;
    if (kind === 'Status') return { ...value, message: redactText(textIn(value, 'message')) };
    const known = { apiVersion, kind, metadata: withoutCopies(metadata) };
    if (Array.isArray(items)) return { ...known, items: items.map((item) => this.#reduced(item)) };
    return { ...known, hash: this.#hash(rest) };
  }

  #hash(value: unknown): string {
    return createHash('sha256').update(this.salt).update(inOrder(value)).digest('hex');
  }
}

function withoutCopies(metadata: unknown): unknown {
  if (!isRecord(metadata)) return undefined;
  const { managedFields: _, annotations, ...rest } = metadata;
  if (!isRecord(annotations)) return rest;
  const kept = Object.entries(annotations).filter(([name]) => !COPIES.has(name));
  return { ...rest, annotations: Object.fromEntries(kept) };
}

/** Returns JSON with the members of objects in alphabetical order. */
function inOrder(value: unknown): string {
  return (
    JSON.stringify(value, (_, member: unknown) =>
      isRecord(member)
        ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
        : member,
    ) ?? ''
  );
}
