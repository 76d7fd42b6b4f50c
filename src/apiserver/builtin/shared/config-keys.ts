const NOT_A_KEY =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

/** Returns why a text is no key of a ConfigMap or a Secret. */
export function configKeyProblems(key: string): string[] {
  const problems = key.length > 253 ? ['must be no more than 253 characters'] : [];
  if (!/^[-._a-zA-Z0-9]+$/.test(key)) problems.push(NOT_A_KEY);
  if (key === '.' || key === '..') return [...problems, `must not be '${key}'`];
  if (key.startsWith('..')) return [...problems, "must not start with '..'"];
  return problems;
}
