import { isDeepStrictEqual } from 'node:util';
import { hasFormat } from '../../src/api/formats.ts';
import { parseFieldSelector } from '../../src/api/field-selector.ts';
import { parseGoTime } from '../../src/api/go-time.ts';
import type { TimeLayout } from '../../src/api/go-time.ts';
import type { JsonSchema } from '../../src/api/json-schema.ts';
import { parseLabelSelector } from '../../src/api/label-selector.ts';
import { isApiError } from '../../src/api/api-error.ts';
import { PODS } from '../../src/api/builtin.ts';
import { canonicalQuantity } from '../../src/api/quantity.ts';
import { BUILTIN_KINDS } from '../../src/apiserver/builtin/kinds.ts';
import { inspectJson } from '../../src/apiserver/json/go-json.ts';
import { parseYaml } from '../../src/apiserver/json/yaml-text.ts';
import { FrameReader } from '../../src/apiserver/http/websocket.ts';
import { jsonPatch, mergePatch, PatchError } from '../../src/apiserver/patch/json-patch.ts';
import { strategicMergePatch } from '../../src/apiserver/patch/strategic-merge-patch.ts';
import { decodeMessage, messageTypeOf } from '../../src/apiserver/protobuf/decode-message.ts';
import { WireError } from '../../src/apiserver/protobuf/wire-reader.ts';
import { evaluateJsonPath, parseJsonPath } from '../../src/apiserver/table/json-path.ts';
import { parse } from '../../src/cel/syntax.ts';
import { CelSyntaxError } from '../../src/cel/expression.ts';
import { parseDuration, parseWordyDuration } from '../../src/util/go-duration.ts';
import { Decoder } from '../../src/client/decoder.ts';
import { parseJson } from '../../src/client/json.ts';
import { decodeKubeConfig } from '../../src/client/kube-config/kube-config-decoder.ts';
import { KubeConfigError } from '../../src/client/kube-config/kube-config-error.ts';
import { ResponseParser, ResponseSyntaxError } from '../../src/client/transport/response-parser.ts';
import { FileError } from '../../src/cluster/shell/container-files.ts';
import { parseLines } from '../../src/cluster/shell/shell-parser.ts';
import { TarReader } from '../../src/cluster/shell/tar.ts';
import { parseCertificateRequest } from '../../src/util/certificate-request.ts';
import { CronSchedule } from '../../src/util/cron-schedule.ts';
import { parseGoYaml } from '../../src/util/go-yaml.ts';
import { NestingError, WidthError } from '../../src/util/json-value.ts';
import { isRecord } from '../../src/util/values.ts';

/** What a parser makes of an input. The value is JSON in a form that is equal for equal meanings. */
export type Answer =
  | { readonly isAccepted: true; readonly value: unknown }
  | { readonly isAccepted: false; readonly why: string };

/** A parser of foreign bytes. */
export interface Target {
  readonly name: string;
  /** Words of the format, from which inputs are made. */
  readonly words: readonly string[];
  /** Largest input that reaches the parser, in bytes. */
  readonly maxBytes: number;
  /**
   * - `text`: UTF-8
   * - `bytes`: anything, whose corpus is in base64
   * - `json`: JSON, whose values are changed
   */
  readonly form: 'text' | 'bytes' | 'json';
  /** @throws if the parser throws an error that its callers do not expect */
  answer(input: Buffer): Answer;
  /** The meaning of the input elsewhere; `go` asks the Go program. Undefined: there is none. */
  readonly reference?: 'go' | ((input: Buffer) => Answer);
  /**
   * How the answers must agree. `subset`: what is accepted here has the same meaning there. `common`: what both
   * accept has the same meaning.
   * @default `equal`: the same inputs are accepted, with the same meaning
   */
  readonly agreement?: 'equal' | 'subset' | 'common';
  /** Whether an input is left out, because it has no meaning here. */
  readonly ignores?: (input: Buffer) => boolean;
  /**
   * Whether the order of a list has no meaning, as that of members of an object in Go.
   * @default false
   */
  readonly isUnordered?: boolean;
}

/** Size of the largest body of a request. */
const BODY = 3 * 1024 * 1024;

/** Size of the largest part of a stream that a socket delivers at once. */
const CHUNK = 64 * 1024;

/** Size of the largest text in a URL. */
const QUERY = 16 * 1024;

/** Accepts what does not throw one of the errors that callers of the parser expect. */
function accepting(parser: () => unknown, isExpected: (error: unknown) => boolean): Answer {
  try {
    return { isAccepted: true, value: parser() };
  } catch (error) {
    if (!isExpected(error)) throw error;
    return { isAccepted: false, why: error instanceof Error ? error.message : '' };
  }
}

const isSyntaxError = (error: unknown) => error instanceof SyntaxError;

function found(value: unknown): Answer {
  return value === undefined ? { isAccepted: false, why: '' } : { isAccepted: true, value };
}

/** Answers by a parser that reads parts: it must make the same of one part as of many. */
function inParts<T>(input: Buffer, read: (parts: readonly Buffer[]) => T): T {
  const whole = read([input]);
  const size = 1 + (input.length % 7);
  const length = Math.ceil(input.length / size);
  if (length > 2000) return whole;
  const parts = Array.from({ length }, (_, index) =>
    input.subarray(index * size, (index + 1) * size),
  );
  const divided = read(parts);
  if (!isDeepStrictEqual(divided, whole))
    throw new Error('The result depends on the division into parts');
  return whole;
}

function moment(layout: TimeLayout): Target['answer'] {
  return (input) => {
    const parsed = parseGoTime(String(input), layout);
    return typeof parsed === 'string'
      ? { isAccepted: false, why: parsed }
      : { isAccepted: true, value: [parsed.seconds, parsed.nanos] };
  };
}

function duration(parser: (text: string) => bigint | undefined): Target['answer'] {
  return (input) => found(parser(String(input))?.toString());
}

function patch(apply: (document: unknown, patch: unknown) => unknown): Target['answer'] {
  return (input) => {
    const { document, patch: sent } = JSON.parse(String(input)) as Record<string, unknown>;
    return accepting(
      () => apply(document, sent),
      (error) => error instanceof PatchError || error instanceof NestingError,
    );
  };
}

/** Only objects are patched, and by an object or a list. */
function isPatchOfNoObject(input: Buffer): boolean {
  const asked: unknown = JSON.parse(String(input));
  if (!isRecord(asked) || !isRecord(asked['document'])) return true;
  return typeof asked['patch'] !== 'object' || asked['patch'] === null;
}

const POD_SCHEMA: JsonSchema =
  BUILTIN_KINDS.find(({ kind, group }) => kind === 'Pod' && group === '')?.schema ?? {};

function requirements(text: string): unknown {
  return parseLabelSelector(text)
    .map((requirement) => {
      const { key, operator } = requirement;
      if ('values' in requirement)
        return { key, operator, values: [...new Set(requirement.values)].toSorted() };
      return { key, operator, values: 'value' in requirement ? [String(requirement.value)] : [] };
    })
    .toSorted((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
}

function kubeconfig(text: string): unknown {
  const { currentContext, contexts, clusters, users } = decodeKubeConfig(parseGoYaml(text), 'file');
  const byName = <T extends { readonly name: string }>(
    list: readonly T[],
    read: (each: T) => unknown,
  ) => Object.fromEntries(list.map((each) => [each.name, read(each)]));
  return [
    currentContext,
    byName(contexts, ({ cluster, user, namespace = '' }) => [cluster, user, namespace]),
    byName(
      clusters,
      ({ server, skipTLSVerify, tlsServerName = '', caFile = '', proxyUrl = '' }) => [
        server,
        skipTLSVerify,
        tlsServerName,
        caFile,
        proxyUrl,
      ],
    ),
    byName(users, ({ token, tokenFile, username, password, certFile }) => [
      token,
      tokenFile,
      username,
      password,
      certFile,
    ]),
  ];
}

const FORMATS =
  'bsonobjectid byte cidr creditcard date datetime duration email hexcolor hostname ipv4 ipv6 isbn isbn10 isbn13 k8slongname k8sshortname mac password rgbcolor ssn uri uuid uuid3 uuid4 uuid5'.split(
    ' ',
  );

const YAML_WORDS = [
  ...`{ } [ ] : - ? , " ' | > # ~ *a null yes 0x1 0o7 0b1 1_0 .inf 2024-01-01`.split(' '),
  ...`: |- |&a |<<: |!!str |  |\n|---\n`.split('|'),
];

export const TARGETS: readonly Target[] = [
  {
    name: 'label-selector',
    // A URL with NUL is rejected.
    ignores: (input) => input.includes(0),
    isUnordered: true,
    form: 'text',
    maxBytes: QUERY,
    words: ['in', 'notin', '(', ')', ',', '=', '==', '!=', '!', '<', '>', ' ', 'a.b/c'],
    answer: (input) => accepting(() => requirements(String(input)), isSyntaxError),
    reference: 'go',
  },
  {
    name: 'field-selector',
    isUnordered: true,
    form: 'text',
    maxBytes: QUERY,
    words: ['=', '==', '!=', ',', '\\', '\\,', 'metadata.name'],
    answer: (input) =>
      accepting(
        () =>
          // Kubernetes ignores a requirement without field and value.
          parseFieldSelector(String(input))
            .filter(({ field, value }) => field !== '' || value !== '')
            .map(({ field, operator, value }) => ({ key: field, operator, values: [value] })),
        isSyntaxError,
      ),
    reference: 'go',
  },
  {
    name: 'quantity',
    form: 'text',
    maxBytes: BODY,
    words: 'EPTGMkmunKi+-.e0123456789'.split(''),
    answer: (input) => found(canonicalQuantity(String(input))),
    reference: 'go',
  },
  {
    name: 'time',
    form: 'text',
    maxBytes: BODY,
    words: ['T', 'Z', '+00:00', '-24:60', '.', ',', ':', '00', '24', '60'],
    answer: moment('seconds'),
    reference: 'go',
  },
  {
    name: 'micro-time',
    form: 'text',
    maxBytes: BODY,
    words: ['T', 'Z', '+00:00', '.123456', '.', ',', ':', '00'],
    answer: moment('micros'),
    reference: 'go',
  },
  {
    name: 'duration',
    form: 'text',
    maxBytes: BODY,
    words: ['h', 'm', 's', 'ms', 'us', 'µs', 'μs', 'ns', '.', '-', '+', '9223372036854775807'],
    answer: duration(parseDuration),
    reference: 'go',
  },
  {
    name: 'format-duration',
    form: 'text',
    maxBytes: BODY,
    words: ['h', 'm', 's', 'hours', 'week', 'days', ' ', '.', '-', 'µs', 'ms'],
    answer: duration(parseWordyDuration),
    reference: 'go',
  },
  {
    name: 'cron',
    form: 'text',
    maxBytes: BODY,
    words: ['*', '/', ',', '-', '?', 'mon', 'JAN', '@every 1h', '@daily', ' ', '\t', '59', '0'],
    answer: (input) =>
      accepting(
        () => new CronSchedule(String(input)).next(Date.UTC(2026, 0, 1, 0, 0, 30)) ?? 0,
        (error) => error instanceof RangeError,
      ),
    reference: 'go',
  },
  {
    name: 'format',
    form: 'text',
    maxBytes: BODY,
    words: [
      ...FORMATS.map((name) => `${name}:`),
      ...':/.@-%[]#0afF\u00e9'.split(''),
      '::',
      '//',
      'xn--',
    ],
    answer: (input) => {
      const text = String(input);
      const end = text.includes(':') ? text.indexOf(':') : text.length;
      return {
        isAccepted: true,
        value:
          FORMATS.includes(text.slice(0, end).replaceAll('-', '')) &&
          hasFormat(text.slice(0, end), text.slice(end + 1)),
      };
    },
    reference: 'go',
  },
  {
    name: 'json',
    form: 'text',
    maxBytes: BODY,
    words: ['{', '}', '[', ']', ',', ':', '"', '\\u', '\\ud800', 'null', 'true', '1e9', '-', '.'],
    answer: (input) => {
      const { problem, strictErrors } = inspectJson(String(input));
      return problem === undefined
        ? { isAccepted: true, value: strictErrors }
        : { isAccepted: false, why: problem };
    },
    reference: 'go',
  },
  {
    name: 'json-path',
    // Columns have no templates, and only of objects.
    ignores: (input) => /^[^\n]*(?:\}|range)|\n[^{]/.test(String(input)),
    isUnordered: true,
    form: 'text',
    maxBytes: BODY,
    words: [
      '.',
      '..',
      '[',
      ']',
      '[*]',
      '[?(',
      ')]',
      '@',
      "'",
      '"',
      ':',
      '-1',
      '\\',
      '==',
      '<=',
      ',',
      '{',
      '}',
    ],
    answer: (input) => {
      const text = String(input);
      const end = text.indexOf('\n');
      return accepting(() => {
        const values = evaluateJsonPath(
          parseJsonPath(text.slice(0, end)),
          JSON.parse(text.slice(end + 1)),
        );
        if (!values) throw new SyntaxError('unfit');
        return values;
      }, isSyntaxError);
    },
    reference: 'go',
  },
  {
    name: 'json-patch',
    ignores: isPatchOfNoObject,
    form: 'json',
    maxBytes: BODY,
    words: ['op', 'path', 'from', 'value', '/a', '/a/0', '/-', '/~1', '/a/-1', ''],
    answer: patch(jsonPatch),
    reference: 'go',
  },
  {
    name: 'merge-patch',
    ignores: isPatchOfNoObject,
    form: 'json',
    maxBytes: BODY,
    words: ['a', 'b', ''],
    answer: patch(mergePatch),
    reference: 'go',
  },
  {
    name: 'strategic-merge-patch',
    ignores: isPatchOfNoObject,
    form: 'json',
    maxBytes: BODY,
    words: [
      '$patch',
      '$retainKeys',
      '$setElementOrder/containers',
      '$deleteFromPrimitiveList/finalizers',
      'name',
      'containers',
      'containerPort',
      'protocol',
    ],
    answer: patch((document, sent) =>
      strategicMergePatch(isRecord(document) ? document : {}, sent, POD_SCHEMA),
    ),
    reference: 'go',
  },
  {
    name: 'protobuf',
    form: 'bytes',
    maxBytes: BODY,
    words: [],
    answer: (input) =>
      accepting(
        () => decodeMessage(messageTypeOf('core.v1.Pod'), input),
        (error) => error instanceof WireError || error instanceof WidthError,
      ),
    reference: 'go',
  },
  {
    name: 'certificate-request',
    form: 'bytes',
    // As base64 in PEM, which is base64 in JSON.
    maxBytes: (BODY * 9) / 16,
    words: [],
    answer: (input) =>
      accepting(
        () => {
          const { commonName, organizations } = parseCertificateRequest(pemOf(input));
          return [commonName, organizations];
        },
        (error) => error instanceof Error,
      ),
    reference: 'go',
    agreement: 'subset',
  },
  {
    name: 'cel',
    form: 'text',
    maxBytes: BODY,
    words: [
      ...'()[]{}.,?:!+-*/%<>=&|\'"\\'.split(''),
      '&&',
      '||',
      'has(',
      '.all(x, ',
      '.?',
      '[?',
      'r"',
      'b"',
      '"""',
      '0x',
      'u',
      'in',
    ],
    answer: (input) => {
      const parsed = parse(String(input));
      return parsed instanceof CelSyntaxError
        ? { isAccepted: false, why: parsed.message }
        : { isAccepted: true, value: null };
    },
    reference: 'go',
  },
  {
    name: 'kubeconfig',
    form: 'text',
    // The size of a Secret.
    maxBytes: 1024 * 1024,
    words: YAML_WORDS,
    answer: (input) =>
      accepting(
        () => kubeconfig(String(input)),
        (error) =>
          error instanceof KubeConfigError || error instanceof RangeError || isYamlError(error),
      ),
    ignores: isOfYaml11,
    reference: 'go',
    agreement: 'common',
  },
  {
    name: 'yaml',
    form: 'text',
    maxBytes: BODY,
    words: YAML_WORDS,
    answer: (input) =>
      accepting(() => parseYaml(String(input), 200_000).documents[0] ?? null, isYamlError),
    reference: 'go',
    // Go's parser differs in what is malformed, and does not read what follows a document.
    agreement: 'common',
    ignores: isOfYaml11,
  },
  {
    name: 'json-of-a-server',
    form: 'text',
    maxBytes: BODY,
    words: [
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"',
      '\\"',
      '\\u0061',
      'metadata',
      'managedFields',
      'items',
      'null',
    ],
    answer: (input) =>
      accepting(
        () => serverDecoder().response(Buffer.from(input), 'a', { resource: PODS }),
        (error) => isApiError(error, 'malformed'),
      ),
    reference: (input) =>
      accepting(
        () => serverDecoder().object(parseJson(Buffer.from(input), 'a'), { resource: PODS }),
        (error) => isApiError(error, 'malformed'),
      ),
  },
  {
    name: 'http-response',
    form: 'bytes',
    maxBytes: BODY,
    words: [
      'HTTP/1.1 200 OK\r\n',
      '\r\n',
      '\n',
      'Content-Length: ',
      'Transfer-Encoding: chunked\r\n',
      '0\r\n\r\n',
      '5;a=b\r\n',
      'Connection: close\r\n',
      ' ',
      ':',
      '\0',
    ],
    answer: (input) =>
      accepting(
        () => inParts(input, responseIn),
        (error) => error instanceof ResponseSyntaxError,
      ),
  },
  {
    name: 'websocket-frames',
    form: 'bytes',
    maxBytes: CHUNK,
    words: [],
    answer: (input) => ({ isAccepted: true, value: inParts(input, messagesIn) }),
  },
  {
    name: 'tar',
    form: 'bytes',
    maxBytes: BODY,
    words: ['ustar', '\0\0\0', '5', 'L', 'x', '0000644', '../'],
    answer: (input) =>
      accepting(
        () => inParts(input, entriesIn),
        (error) => error instanceof FileError,
      ),
  },
  {
    name: 'shell',
    form: 'text',
    maxBytes: BODY,
    words: [
      'if ',
      '; then ',
      '; fi',
      'while ',
      'do ',
      'done',
      '$(',
      ')',
      '$((',
      '))',
      '${',
      '}',
      '"',
      "'",
      '&&',
      '||',
      '>',
      '\\',
      '\n',
      '!',
    ],
    answer: (input) => ({ isAccepted: true, value: typeof parseLines(String(input)) }),
  },
];

function serverDecoder(): Decoder {
  return new Decoder({ keepManagedFields: true });
}

/** In YAML 1.1, a question mark is an indicator without a space after it. */
function isOfYaml11(input: Buffer): boolean {
  return /[[{,]\s*\?/.test(String(input));
}

function isYamlError(error: unknown): boolean {
  return error instanceof Error && error.name === 'YAMLException';
}

function pemOf(der: Buffer): string {
  return `-----BEGIN CERTIFICATE REQUEST-----\n${der.toString('base64')}\n-----END CERTIFICATE REQUEST-----\n`;
}

function responseIn(parts: readonly Buffer[]): unknown {
  const events: unknown[] = [];
  const body: Uint8Array[] = [];
  const parser = new ResponseParser({
    onHead: ({ status, headers }) => void events.push(status, headers),
    onData: (bytes) => void body.push(bytes),
    onComplete: (isReusable) => void events.push({ isReusable }),
  });
  parser.start();
  try {
    for (const part of parts) parser.parse(Buffer.from(part));
  } catch (error) {
    if (!(error instanceof ResponseSyntaxError)) throw error;
    // The bytes before the error can have been delivered, or not.
    return 'malformed';
  }
  return [events, Buffer.concat(body)];
}

function messagesIn(parts: readonly Buffer[]): unknown {
  const messages: Uint8Array[][] = [[]];
  const responses: Uint8Array[] = [];
  let isClosed = false;
  const reader = new FrameReader((part, isLast) => {
    messages.at(-1)?.push(Uint8Array.from(part));
    if (isLast) messages.push([]);
  });
  for (const part of parts) {
    if (isClosed) break;
    const read = reader.read(part);
    responses.push(read.response);
    ({ isClosed } = read);
  }
  return [messages.map((each) => Buffer.concat(each)), Buffer.concat(responses), isClosed];
}

function entriesIn(parts: readonly Buffer[]): unknown {
  const reader = new TarReader();
  return [parts.flatMap((part) => reader.read(part)), reader.isComplete];
}
