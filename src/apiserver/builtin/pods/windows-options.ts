import { typedText } from '../../../api/field-error.ts';
import { nameProblems } from '../../../api/object-names.ts';
import { utf8Length } from '../../../util/bytes.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';

const DNS_LABEL = '[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?';
const DNS_NAME = new RegExp(String.raw`^${DNS_LABEL}(?:\.${DNS_LABEL})*$`);
const NETBIOS_NAME = /^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}$/;
const MAX_CREDENTIAL_KIB = 64;

/** Reports what is wrong with the Windows options of a security context. */
export function validateWindowsOptions(options: CheckedObject): void {
  const spec = 'gmsaCredentialSpecName';
  if (options.has(spec)) {
    const name = options.text(spec);
    options.problems(spec, nameProblems(name, 'dns1123Subdomain'), typedText(name));
  }
  const field = 'gmsaCredentialSpec';
  if (options.has(field)) {
    const size = utf8Length(options.text(field));
    if (size === 0) options.invalid(field, `${field} cannot be an empty string`);
    else if (size > MAX_CREDENTIAL_KIB * 1024) {
      const why = `${field} size must be under ${MAX_CREDENTIAL_KIB} KiB`;
      options.invalid(field, why, typedText(options.text(field)));
    }
  }
  if (!options.has('runAsUserName')) return;
  const name = options.text('runAsUserName');
  for (const why of userNameProblems(name)) {
    options.invalid('runAsUserName', `runAsUserName${why}`, typedText(name));
  }
}

function userNameProblems(name: string): string[] {
  if (name === '') return [' cannot be an empty string'];
  if (/(?=\p{ASCII})\p{Cc}/u.test(name)) return [' cannot contain control characters'];
  const parts = name.split('\\');
  if (parts.length > 2) return [' cannot contain more than one backslash'];
  const domain = parts.length === 2 ? parts[0] : undefined;
  const user = parts.at(-1) ?? '';
  const hasFormat = domain === undefined || NETBIOS_NAME.test(domain) || DNS_NAME.test(domain);
  const problems: [isProblem: boolean, problem: string][] = [
    [(domain ?? '').length >= 256, "'s Domain length must be under 256 characters"],
    [!hasFormat, "'s Domain doesn't match the NetBios nor the DNS format"],
    [user === '', "'s User cannot be empty"],
    [user.length > 104, "'s User length must not be longer than 104 characters"],
    [/^[. ]+$/.test(user), "'s User cannot contain only periods or spaces"],
    [
      /["/\\:;|=,+*?<>@[\]]/.test(user),
      `'s User cannot contain the following characters: "/\\:;|=,+*?<>@[]`,
    ],
  ];
  return problems.flatMap(([isProblem, problem]) => (isProblem ? [problem] : []));
}
