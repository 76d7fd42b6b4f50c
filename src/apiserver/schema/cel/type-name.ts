/** The types that an expression can name, to compare `type(x)` with. */
const NAMES: ReadonlySet<string> = new Set([
  'bool',
  'bytes',
  'double',
  'int',
  'list',
  'map',
  'null_type',
  'optional_type',
  'string',
  'type',
  'uint',
  'google.protobuf.Duration',
  'google.protobuf.Timestamp',
  'kubernetes.NamedFormat',
  'kubernetes.Quantity',
  'kubernetes.Semver',
  'kubernetes.URL',
  'net.CIDR',
  'net.IP',
]);

export function isTypeName(name: string): boolean {
  return NAMES.has(name);
}
