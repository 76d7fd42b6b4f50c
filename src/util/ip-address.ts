/** Returns 4 or 6 for an address of that version, and 0 for other texts, as `isIP` of `node:net`. */
export function isIP(text: string): 0 | 4 | 6 {
  if (isIPv4(text)) return 4;
  return isIPv6(text) ? 6 : 0;
}

const OCTET = String.raw`(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`;
const IPV4 = new RegExp(String.raw`^(?:${OCTET}\.){3}${OCTET}$`);

export function isIPv4(text: string): boolean {
  return IPV4.test(text);
}

/** Accepts a zone at the end: `fe80::1%eth0`. */
export function isIPv6(text: string): boolean {
  const [, address = '', zone] = /^([^%]*)(%.*)?$/s.exec(text) ?? [];
  if (zone !== undefined && !/^%[\da-z.:-]+$/i.test(zone)) return false;
  return groupsOf(address) !== undefined;
}

/** Length of the longest IPv6 address, with an IPv4 address at its end. */
const MAX_IPV6 = 45;

/** Returns the 8 groups of an IPv6 address without a zone; undefined if it is not valid. */
function groupsOf(address: string): readonly number[] | undefined {
  if (address.length > MAX_IPV6) return undefined;
  const halves = address.split('::');
  if (halves.length > 2) return undefined;
  const [before, after] = halves.map((half, index) =>
    half === '' ? [] : halfOf(half.split(':'), index === halves.length - 1),
  );
  if (!before) return undefined;
  if (halves.length === 1) return before.length === 8 ? before : undefined;
  const missing = 8 - before.length - (after?.length ?? 8);
  return after && missing > 0
    ? [...before, ...Array<number>(missing).fill(0), ...after]
    : undefined;
}

/** @param isLast whether the last part can be an IPv4 address */
function halfOf(parts: readonly string[], isLast: boolean): readonly number[] | undefined {
  const groups: number[] = [];
  for (const [index, part] of parts.entries()) {
    if (/^[\da-f]{1,4}$/i.test(part)) {
      groups.push(Number.parseInt(part, 16));
    } else if (isLast && index === parts.length - 1 && isIPv4(part)) {
      const [a = 0, b = 0, c = 0, d = 0] = part.split('.').map(Number);
      groups.push(a * 256 + b, c * 256 + d);
    } else {
      return undefined;
    }
  }
  return groups;
}

interface Bits {
  readonly width: 32 | 128;
  readonly value: bigint;
}

/** Returns the bits of an address without a zone, as a number; undefined if it is not valid. */
function bitsOf(address: string): Bits | undefined {
  if (isIPv4(address)) {
    const [a = 0, b = 0, c = 0, d = 0] = address.split('.', 4);
    const value = ((Number(a) * 256 + Number(b)) * 256 + Number(c)) * 256 + Number(d);
    return { width: 32, value: BigInt(value) };
  }
  const groups = groupsOf(address);
  if (!groups) return undefined;
  return { width: 128, value: groups.reduce((bits, group) => (bits << 16n) | BigInt(group), 0n) };
}

/** Whether the block `network/prefix` has an address of the same version. */
export function isInBlock(address: string, network: string, prefix: number): boolean {
  const [inner, block] = [bitsOf(address), bitsOf(network)];
  if (!inner || !block || inner.width !== block.width) return false;
  const hostBits = BigInt(block.width - prefix);
  return inner.value >> hostBits === block.value >> hostBits;
}
