import { ManifestError } from './manifest.ts';

/**
 * The text that `chunks` are together; reading ends where the limit does.
 *
 * @throws {ManifestError} if it is longer than `maxBytes`, or is not UTF-8
 */
export async function textOf(
  chunks: AsyncIterable<string | Uint8Array>,
  maxBytes: number,
  source: string,
): Promise<string> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    length += bytes.length;
    if (length > maxBytes) throw unreadable(source, `it is longer than ${maxBytes} bytes`);
    parts.push(bytes);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(parts, length));
  } catch {
    throw unreadable(source, 'it is not a text in UTF-8');
  }
}

export function unreadable(source: string, what: string): ManifestError {
  return new ManifestError([{ message: `${source}: ${what}` }]);
}
