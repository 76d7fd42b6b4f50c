import type { NameFormat } from '../../../api/object-names.ts';
import { nameProblems } from '../../../api/object-names.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';

/** Reports a name that is none of a domain with at least three parts. */
export function requireQualifiedName(holder: CheckedObject, field: string): void {
  const name = holder.text(field);
  if (name === '') holder.required(field);
  else requireParts(holder, field, name, 3);
}

/** Reports a name that is none of a domain with at least two parts. The last one may have a dot. */
export function requireDomain(holder: CheckedObject, field: string, name: string): void {
  const domain = name.replace(/\.$/, '');
  if (name === '') holder.required(field);
  if (name === '' || !requireParts(holder, field, domain, 2)) return;
  for (const label of domain.split('.')) {
    if (requireFormat(holder, field, label, 'dns1123Label')) continue;
    return;
  }
}

function requireParts(holder: CheckedObject, field: string, name: string, parts: 2 | 3): boolean {
  if (!requireFormat(holder, field, name, 'dns1123Subdomain')) return false;
  if (name.split('.').length >= parts) return true;
  const count = parts === 2 ? 'two' : 'three';
  const why = `should be a domain with at least ${count} segments separated by dots`;
  holder.invalid(field, why, name);
  return false;
}

/** Reports all problems of a name as one. */
function requireFormat(
  holder: CheckedObject,
  field: string,
  name: string,
  format: NameFormat,
): boolean {
  const problems = nameProblems(name, format);
  if (problems.length > 0) holder.invalid(field, problems.join(','), name);
  return problems.length === 0;
}

/** The characters of a path in an URL. */
const PATH = /^[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$/;

/** Reports a text that is no domain with a path, `acme.io/foo`. */
export function requireDomainPath(holder: CheckedObject, field: string): void {
  const text = holder.text(field);
  const slash = text.indexOf('/');
  if (text === '') {
    holder.required(field);
    return;
  }
  const path = text.slice(slash + 1);
  if (slash < 1 || path === '') {
    holder.invalid(field, 'must be a domain-prefixed path (such as "acme.io/foo")');
    return;
  }
  holder.problems(
    field,
    nameProblems(text.slice(0, slash), 'dns1123Subdomain'),
    text.slice(0, slash),
  );
  if (PATH.test(path)) return;
  const why = `Invalid path (regex used for validation is '${PATH.source.replaceAll('\\/', '/').slice(1, -1)}')`;
  holder.invalid(field, why, path);
}
