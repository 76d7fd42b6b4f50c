declare const brand: unique symbol;

/**
 * `namespace/name`, or `name` for cluster-scoped kinds: the name of an object within its resource.
 * The form is client-go's MetaNamespaceKey. Made and read here only.
 */
export type ObjectKey = string & { readonly [brand]: 'ObjectKey' };

/** Where an object is, within its resource. */
export interface ObjectName {
  /** Absent for cluster-scoped kinds. */
  readonly namespace?: string | undefined;
  readonly name: string;
}

export function objectKey(namespace: string | undefined, name: string): ObjectKey {
  return (namespace ? `${namespace}/${name}` : name) as ObjectKey;
}

export function keyOf(object: { readonly metadata: ObjectName }): ObjectKey {
  return objectKey(object.metadata.namespace, object.metadata.name);
}

/**
 * @throws {SyntaxError} if the key has more than one slash
 */
export function splitKey(key: string): ObjectName {
  const [first = '', second, ...rest] = key.split('/');
  if (rest.length > 0) throw new SyntaxError(`Unexpected key format: ${JSON.stringify(key)}`);
  return second === undefined ? { name: first } : { namespace: first, name: second };
}

/** The namespace that a key names, whatever else it may name. */
export function namespaceOf(key: ObjectKey): string | undefined {
  const end = key.indexOf('/');
  return end < 0 ? undefined : key.slice(0, end);
}
