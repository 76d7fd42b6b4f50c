import { goQuote } from '../../util/go-quote.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { NestingError, objectIn, textIn } from '../../util/json-value.ts';
import { toHex, utf8Text } from '../../util/bytes.ts';
import { badRequest } from '../objects/status-error.ts';
import { decodeMessage, messageType, messageTypeOf } from './decode-message.ts';
import { delimitedLength, messageLength, textLength } from './message-length.ts';
import { encodeMessage } from './encode-message.ts';
import type { MessageType } from './decode-message.ts';
import { WIRE_BYTES, WireError, WireReader } from './wire-reader.ts';
import { WireWriter } from './wire-writer.ts';

export const PROTOBUF_TYPE = 'application/vnd.kubernetes.protobuf';

/** The kind that a body must have, by the request path. */
export interface ExpectedKind {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** True for a kind that a CRD defines, which has no protobuf message. */
  readonly custom?: boolean;
}

/** Prefix of every protobuf body: `k8s` and a zero. */
const PREFIX = Uint8Array.of(0x6b, 0x38, 0x73, 0);

const EXCERPT_BYTES = 30;

/** Returns the message of a kind, or undefined if the kind has no protobuf encoding. */
export function messageOfKind({
  group,
  version,
  kind,
  custom = false,
}: ExpectedKind): MessageType | undefined {
  // `coordination.k8s.io` is the package `coordination`.
  const name = group === '' ? 'core' : group.split('.')[0];
  return custom ? undefined : messageType(`${name}.${version}.${kind}`);
}

/**
 * Decodes a body of the media type `application/vnd.kubernetes.protobuf` to a JSON object. The body
 * is the prefix and an envelope with the message. The envelope may lack apiVersion and kind.
 *
 * @throws {StatusError} 400 if the body is malformed or has another kind
 * @throws {WidthError} if it has more than `maxMessages` messages
 */
export function decodeProtobufBody(
  bytes: Uint8Array,
  expected: ExpectedKind,
  message: MessageType,
  maxMessages: number = Infinity,
): JsonObject {
  const { apiVersion, kind, raw } = decoding(
    () => readEnvelope(bytes),
    (why) =>
      `the object provided is unrecognized (must be of type ${expected.kind}): ${why} (${excerpt(bytes)})`,
  );
  const cannotBeHandled = (why: string) =>
    `${kind || expected.kind} in version ${goQuote(versionIn(apiVersion) || expected.version)} cannot be handled as a ${expected.kind}: ${why}`;
  if (kind !== '' && kind !== expected.kind) {
    throw badRequest(
      cannotBeHandled(
        `the kind in the data (${kind}) does not match the expected kind (${expected.kind})`,
      ),
    );
  }
  const members = decoding(() => decodeMessage(message, raw, maxMessages), cannotBeHandled);
  return { ...(kind && { kind }), ...(apiVersion && { apiVersion }), ...members };
}

/**
 * Encodes an object as a body of the media type `application/vnd.kubernetes.protobuf`.
 *
 * @param message its message; by default that of its apiVersion and kind
 */
export function encodeBody(
  object: JsonObject,
  message: MessageType = messageOfType(object),
): Uint8Array {
  return enveloped(object, (writer) => encodeMessage(message, object, writer));
}

/** Returns the length of the body of an object. */
export function bodyLength(object: JsonObject, message: MessageType): number {
  const typeMeta =
    textLength(1, textIn(object, 'apiVersion')) + textLength(2, textIn(object, 'kind'));
  const rest =
    delimitedLength(2, messageLength(message, object)) + textLength(3, '') + textLength(4, '');
  return PREFIX.byteLength + delimitedLength(1, typeMeta) + rest;
}

/** Encodes a list. All lists have their metadata as field 1 and their items as field 2. */
export function encodeList(
  head: JsonObject,
  items: readonly JsonObject[],
  message: MessageType,
): Uint8Array {
  return enveloped(head, (writer) => {
    for (const item of items.toReversed()) {
      const { length } = writer;
      encodeMessage(message, item, writer);
      writer.delimit(2, length);
    }
    const { length } = writer;
    encodeMessage(messageTypeOf('meta.v1.ListMeta'), objectIn(head, 'metadata') ?? {}, writer);
    writer.delimit(1, length);
  });
}

/** Encodes a watch event with its length, as in the stream of a watch. */
export function encodeEvent(type: string, object: JsonObject): Uint8Array {
  const writer = new WireWriter();
  const raw = encodeBody(object);
  writer.bytes(1, raw);
  writer.delimit(2, 0);
  writer.text(1, type);
  const length = new DataView(new ArrayBuffer(4));
  length.setUint32(0, writer.length);
  writer.raw(new Uint8Array(length.buffer));
  return writer.finish();
}

/** Writes the prefix and the envelope around a message. */
function enveloped(typeMeta: JsonObject, write: (writer: WireWriter) => void): Uint8Array {
  const writer = new WireWriter();
  // The encoding and the media type of the message.
  writer.text(4, '');
  writer.text(3, '');
  let { length } = writer;
  write(writer);
  writer.delimit(2, length);
  ({ length } = writer);
  writer.text(2, textIn(typeMeta, 'kind'));
  writer.text(1, textIn(typeMeta, 'apiVersion'));
  writer.delimit(1, length);
  writer.raw(PREFIX);
  return writer.finish();
}

/** Returns the message of an object's kind; kinds that are no resources are in the package `meta.v1`. */
function messageOfType(object: JsonObject): MessageType {
  const [version = '', group = ''] = textIn(object, 'apiVersion').split('/').reverse();
  const kind = textIn(object, 'kind');
  return messageOfKind({ group, version, kind }) ?? messageTypeOf(`meta.v1.${kind}`);
}

interface TypeMeta {
  readonly apiVersion: string;
  readonly kind: string;
}

interface Envelope extends TypeMeta {
  readonly raw: Uint8Array;
}

/** Reads apimachinery's `runtime.Unknown`. Its encoding fields are ignored, as upstream does. */
function readEnvelope(bytes: Uint8Array): Envelope {
  if (bytes.byteLength === 0) throw new WireError('empty data');
  if (!PREFIX.every((byte, index) => bytes[index] === byte)) {
    throw new WireError(
      `provided data does not appear to be a protobuf message, expected prefix [${PREFIX.join(' ')}]`,
    );
  }
  if (bytes.byteLength === PREFIX.byteLength) throw new WireError('empty body');
  let typeMeta: TypeMeta = { apiVersion: '', kind: '' };
  let raw: Uint8Array = new Uint8Array();
  const reader = new WireReader(bytes, PREFIX.byteLength);
  for (let tag = reader.tag('Unknown'); tag; tag = reader.tag('Unknown')) {
    if (tag.number === 1) {
      requireBytes(tag.wireType, 'TypeMeta');
      typeMeta = readTypeMeta(reader.nested());
    } else if (tag.number === 2) {
      requireBytes(tag.wireType, 'Raw');
      raw = reader.bytes();
    } else {
      reader.skip(tag.wireType);
    }
  }
  return { ...typeMeta, raw };
}

function readTypeMeta(reader: WireReader): TypeMeta {
  let apiVersion = '';
  let kind = '';
  for (let tag = reader.tag('TypeMeta'); tag; tag = reader.tag('TypeMeta')) {
    if (tag.number === 1) {
      requireBytes(tag.wireType, 'APIVersion');
      apiVersion = reader.text();
    } else if (tag.number === 2) {
      requireBytes(tag.wireType, 'Kind');
      kind = reader.text();
    } else {
      reader.skip(tag.wireType);
    }
  }
  return { apiVersion, kind };
}

function requireBytes(wireType: number, field: string): void {
  if (wireType === WIRE_BYTES) return;
  throw new WireError(`proto: wrong wireType = ${wireType} for field ${field}`);
}

function decoding<T>(decode: () => T, message: (why: string) => string): T {
  try {
    return decode();
  } catch (error) {
    if (error instanceof WireError || error instanceof NestingError) {
      throw badRequest(message(error.message));
    }
    throw error;
  }
}

/** `v1` of `apps/v1`. */
function versionIn(apiVersion: string): string {
  return apiVersion.slice(apiVersion.indexOf('/') + 1);
}

/** The start of a body: as text if it may be JSON, else in hexadecimal. */
function excerpt(bytes: Uint8Array): string {
  if (bytes.byteLength === 0) return '<empty>';
  const start = bytes.subarray(0, EXCERPT_BYTES);
  const text = bytes[0] === 0x7b ? utf8Text(start) : toHex(start);
  return bytes.byteLength > EXCERPT_BYTES ? `${text} ...` : text;
}
