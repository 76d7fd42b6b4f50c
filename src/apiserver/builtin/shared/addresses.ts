import { goQuote } from '../../../util/go-quote.ts';
import { isIP } from '../../../util/ip-address.ts';

/** An IP address in the form that Go writes, and whether the text is a form that Go's `netip` accepts. */
interface Address {
  readonly text: string;
  readonly bits: 32 | 128;
  readonly value: bigint;
  readonly isStandard: boolean;
}

/**
 * Returns why a new value is no IP address, undefined if it is one.
 *
 * @param isCanonical whether only the form that Go writes is valid
 */
export function ipProblem(text: string, isCanonical: boolean = false): string | undefined {
  const address = parseIp(text);
  if (!address) return 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';
  if (!address.isStandard) {
    return text.includes(':')
      ? 'must not be an IPv4-mapped IPv6 address'
      : 'must not have leading 0s';
  }
  const isOther = isCanonical && address.text !== text;
  return isOther ? `must be in canonical form (${goQuote(address.text)})` : undefined;
}

/** Returns an IP address as Go writes it, undefined if the text is none. */
export function canonicalIp(text: string): string | undefined {
  return parseIp(text)?.text;
}

/**
 * Returns why a new value is no network, undefined if it is one.
 *
 * @param isCanonical whether only the form that Go writes is valid
 */
export function cidrProblem(text: string, isCanonical: boolean = false): string | undefined {
  const [, ip = '', size = ''] = /^(.*)\/(\d{1,4})$/s.exec(text) ?? [];
  const address = parseIp(ip);
  const isIpv6 = ip.includes(':');
  if (!address || Number(size) > (isIpv6 ? 128 : 32)) {
    return 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)';
  }
  if (isIpv6 && !address.isStandard) return 'must not have an IPv4-mapped IPv6 address';
  if (!address.isStandard || /^0\d/.test(size)) {
    return 'must not have leading 0s in IP or prefix length';
  }
  const host = BigInt(address.bits - Number(size));
  if ((address.value >> host) << host !== address.value) {
    return 'must not have bits set beyond the prefix length';
  }
  const shown = `${address.text}/${size}`;
  return isCanonical && shown !== text
    ? `must be in canonical form (${goQuote(shown)})`
    : undefined;
}

/** Parses a network, also in a form that is no longer valid. */
export function parseCidr(text: string): { ip: string; length: number; bits: number } | undefined {
  const [, ip = '', size = ''] = /^(.*)\/(\d{1,4})$/s.exec(text) ?? [];
  const address = parseIp(ip);
  const length = Number(size);
  if (!address || length > (ip.includes(':') ? 128 : 32)) return undefined;
  return { ip: address.text, length, bits: address.bits };
}

/** Returns the warnings of an IP address in a field. A text that is no address is left to validation. */
export function ipWarnings(path: string, text: string): string[] {
  const address = parseIp(text);
  if (!address || (address.isStandard && address.text === text)) return [];
  return [
    address.isStandard
      ? `${path}: IPv6 address ${goQuote(text)} should be in RFC 5952 canonical format (${goQuote(address.text)})`
      : `${path}: non-standard IP address ${goQuote(text)} is invalid: use ${goQuote(address.text)}`,
  ];
}

/** Returns the warnings of a network in a field. */
export function cidrWarnings(path: string, text: string): string[] {
  const [, ip = '', size = ''] = /^(.*)\/(\d{1,4})$/s.exec(text) ?? [];
  const address = parseIp(ip);
  // An IPv4 address in the form of IPv6 has the length of IPv6.
  const isMapped = address?.bits === 32 && ip.includes(':');
  const length = Number(size) - (isMapped ? 96 : 0);
  if (!address || length < 0 || length > address.bits) return [];
  const host = BigInt(address.bits - length);
  const network = (address.value >> host) << host;
  const isNetwork = network === address.value;
  const shown = `${isNetwork ? address.text : textOf(network, address.bits)}/${length}`;
  const warnings: string[] = [];
  if (!isNetwork) {
    const single = `${address.text}/${isMapped ? 128 : address.bits}`;
    warnings.push(
      `${path}: CIDR value ${goQuote(text)} is ambiguous in this context (should be ${goQuote(shown)} or ${goQuote(single)}?)`,
    );
  }
  if (!address.isStandard || /^0\d/.test(size)) {
    warnings.push(
      `${path}: non-standard CIDR value ${goQuote(text)} is invalid: use ${goQuote(shown)}`,
    );
  }
  if (warnings.length === 0 && shown !== text) {
    warnings.push(
      `${path}: IPv6 CIDR value ${goQuote(text)} should be in RFC 5952 canonical format (${goQuote(shown)})`,
    );
  }
  return warnings;
}

/** Parses an address whose numbers may have leading zeros, as before Go 1.17. */
function parseIp(text: string): Address | undefined {
  const dotted = /^(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(text);
  if (dotted) {
    const [a, b, c, d] = [
      Number(dotted[1]),
      Number(dotted[2]),
      Number(dotted[3]),
      Number(dotted[4]),
    ];
    if (Math.max(a, b, c, d) > 255) return undefined;
    const canonical = `${a}.${b}.${c}.${d}`;
    // One BigInt for the whole address, because an object can have a hundred thousand.
    const value = BigInt(((a * 256 + b) * 256 + c) * 256 + d);
    return { text: canonical, bits: 32, value, isStandard: canonical === text };
  }
  if (text.includes('%') || isIP(text) !== 6) return undefined;
  const canonical = new URL(`http://[${text}]`).hostname.slice(1, -1);
  const [head = '', tail] = canonical.split('::');
  const [before, after] = [groupsOf(head), groupsOf(tail ?? '')];
  const zeros = Array<string>(8 - before.length - after.length).fill('0');
  const groups = [...before, ...zeros, ...after];
  const value = groups.reduce((sum, group) => (sum << 16n) + BigInt(`0x${group}`), 0n);
  if (value >> 32n === 0xffffn) {
    const own = value & 0xffff_ffffn;
    return { text: textOf(own, 32), bits: 32, value: own, isStandard: false };
  }
  return { text: canonical, bits: 128, value, isStandard: true };
}

function groupsOf(text: string): string[] {
  return text === '' ? [] : text.split(':');
}

function textOf(value: bigint, bits: 32 | 128): string {
  if (bits === 32) return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 255n).join('.');
  const groups = value.toString(16).padStart(32, '0').match(/.{4}/g) ?? [];
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1);
}
