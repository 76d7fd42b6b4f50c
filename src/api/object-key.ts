declare const brand: unique symbol;

/**
 * The key of an object within its resource: `namespace/name`, or `name` for cluster-scoped kinds. The format
 * is that of client-go's MetaNamespaceKeyFunc. Only this module creates and parses keys.
 */
export type ObjectKey = string & {
  /** The text is part of the type error about a plain string. */
  readonly [brand]: 'result of keyOf(object) or objectKey(namespace, name)';
};

/** Namespace and name of an object. */
export interface ObjectName {
  /** Absent for cluster-scoped kinds. */
  readonly namespace?: string | undefined;
  readonly name: string;
}

/** Returns `namespace/name`, or `name` without a namespace. */
export function objectKey(namespace: string | undefined, name: string): ObjectKey {
  return (namespace ? `${namespace}/${name}` : name) as ObjectKey;
}

/**
 * Returns the key of an object: `namespace/name`, or `name` without a namespace.
 *
 * @example
 * ```ts
 * import { keyOf } from 'crd-controller';
 *
 * console.log(keyOf({ metadata: { namespace: 'default', name: 'web' } })); // prints: default/web
 * ```
 */
export function keyOf(object: { readonly metadata: ObjectName }): ObjectKey {
  return objectKey(object.metadata.namespace, object.metadata.name);
}

/**
 * Splits a key into namespace and name.
 *
 * @throws {SyntaxError} if the key has more than one slash
 *
 * @example
 * ```ts
 * import { splitKey } from 'crd-controller';
 *
 * console.log(splitKey('default/web').name); // prints: web
 * ```
 */
export function splitKey(key: string): ObjectName {
  const [first = '', second, ...rest] = key.split('/');
  if (rest.length > 0) throw new SyntaxError(`Unexpected key format: ${JSON.stringify(key)}`);
  return second === undefined ? { name: first } : { namespace: first, name: second };
}

/** Returns the namespace of a key, or undefined for cluster-scoped kinds. */
export function namespaceOf(key: ObjectKey): string | undefined {
  const end = key.indexOf('/');
  return end < 0 ? undefined : key.slice(0, end);
}
