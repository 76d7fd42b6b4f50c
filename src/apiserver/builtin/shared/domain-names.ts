import { nameProblems } from '../../../api/object-names.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';

/** Reports a name that is none of a domain with at least this number of parts. */
export function requireDomain(holder: CheckedObject, field: string, name: string, parts = 2): void {
  const complete = name.replace(/\.$/, '');
  const problems = nameProblems(complete, 'dns1123Subdomain');
  if (complete === '') holder.required(field);
  else if (problems.length > 0) holder.problems(field, problems, complete);
  else if (complete.split('.').length < parts) {
    const count = parts === 2 ? 'two' : 'three';
    const why = `should be a domain with at least ${count} segments separated by dots`;
    holder.invalid(field, why, complete);
  }
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
