import { printableText } from '../../util/printable.ts';
import { open, readFile } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import type { AuditOptions } from '../../apiserver/audit/audit.ts';
import { auditPolicyProblem } from '../../apiserver/audit/audit.ts';
import { parseDocuments } from '../../client/apply/manifest-yaml.ts';
import type { Logger } from '../../util/logger.ts';
import { isRecord } from '../../util/values.ts';
import { onPath, UsageError } from '../common/errors.ts';

/** Maximum size of the events that wait for a slow disk or terminal, in bytes. Further events are dropped. */
const MAX_PENDING_BYTES = 16 * 1024 * 1024;

/** Writes audit events as lines of JSON. Only its close waits. */
export class AuditLog implements AuditOptions {
  readonly policy: AuditOptions['policy'];
  readonly #sink: Writable;
  #dropped = 0;

  constructor(policy: AuditOptions['policy'], sink: Writable, log: Logger) {
    this.policy = policy;
    this.#sink = sink;
    sink.on('error', (error) => log.error(error, 'Failed to write audit events'));
    sink.on('drain', () => {
      if (this.#dropped > 0) log.info('Dropped audit events', { count: this.#dropped });
      this.#dropped = 0;
    });
  }

  readonly write: AuditOptions['write'] = (event) => {
    if (this.#sink.destroyed || this.#sink.writableLength > MAX_PENDING_BYTES) this.#dropped++;
    else this.#sink.write(`${printableText(JSON.stringify(event))}\n`);
  };

  /** Writes what waits, and closes the file. */
  async close(): Promise<void> {
    if (this.#sink === process.stdout || this.#sink.closed) return;
    const closed = new Promise<void>((resolve) => {
      this.#sink.once('close', resolve);
    });
    this.#sink.end();
    await closed;
  }
}

/**
 * Opens the audit log of flags. Returns undefined if there are none.
 *
 * @throws {UsageError} if only one of the flags is set, the policy cannot be read, or the log not written
 */
export async function openAuditLog(
  policyFile: string,
  logPath: string,
  log: Logger,
): Promise<AuditLog | undefined> {
  if (policyFile === '' && logPath === '') return undefined;
  if (policyFile === '' || logPath === '') {
    throw new UsageError('--audit-policy-file and --audit-log-path need each other');
  }
  const what = `cannot read the audit policy ${policyFile}`;
  const text = await onPath(what, () => readFile(policyFile, 'utf8'));
  const policy = policyIn(text, what);
  const file = `cannot write the audit log ${logPath}`;
  const sink =
    logPath === '-'
      ? process.stdout
      : (await onPath(file, () => open(logPath, 'a', 0o600))).createWriteStream();
  return new AuditLog(policy, sink, log);
}

/** @throws {UsageError} if the text is not an audit policy in YAML */
function policyIn(text: string, what: string): Readonly<Record<string, unknown>> {
  const [document] = parseDocuments(text);
  if (document?.kind === 'malformed') throw new UsageError(`${what}: ${document.message}`);
  const policy = isRecord(document?.value) ? document.value : {};
  const problem = auditPolicyProblem(policy);
  if (problem !== undefined) throw new UsageError(`${what}: ${problem}`);
  return policy;
}
