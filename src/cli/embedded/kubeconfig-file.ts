import { createPrivateKey, randomBytes, randomUUID, X509Certificate } from 'node:crypto';
import { link, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { parse, stringify } from 'yaml';
import { createServerAuthority } from '../../apiserver/api-server.ts';
import { hasErrorCode, isRecord } from '../../util/values.ts';
import { systemClock } from '../../util/clock.ts';
import type { Clock } from '../../util/clock.ts';
import type { Certificate } from '../../util/x509.ts';
import { errorText, UsageError } from '../common/errors.ts';
import { newTemporaryFolder } from '../common/temporary-folder.ts';

/** First line of every kubeconfig that this program writes. kubectl removes it. */
const MARKER = '# Written by crd-controller, which may write it again.';

/** Extension of the cluster in every kubeconfig that this program writes. kubectl keeps it. */
const EXTENSION = 'crd-controller/serve';

/** First line of the file with the key of the CA; PEM permits text before the key. */
const KEY_MARKER =
  'Written by crd-controller serve: the key of the CA in the kubeconfig beside it.';

/** A CA with a shorter remaining validity, in milliseconds, is replaced. */
const SHORTEST_VALIDITY_MS = 30 * 24 * 60 * 60_000;

/** Identity of a server for its clients: the CA and the credentials of the administrator. */
export interface ServerIdentity {
  readonly authority: Certificate;
  readonly token: string;
  /** Certificate that the CA has signed; undefined if there is none yet. */
  readonly client?: Certificate | undefined;
}

/** Kubeconfig that this program wrote. kubectl may have modified it. */
export interface OwnKubeconfig {
  readonly document: Readonly<Record<string, unknown>>;
  /** Address of the server, if present. */
  readonly server: URL | undefined;
  readonly identity: ServerIdentity | undefined;
}

/**
 * Reads the kubeconfig at `path` before it is overwritten. The identity is present only if the key of the CA
 * is in the file beside it, readable by its owner only, and valid long enough.
 *
 * @returns undefined if the file does not exist
 * @throws {UsageError} if this program did not write the file, or it cannot be read
 */
export async function readOwnKubeconfig(
  path: string,
  clock: Pick<Clock, 'now'> = systemClock,
): Promise<OwnKubeconfig | undefined> {
  const text = await textOf(path);
  if (text === undefined) return undefined;
  const document = parseEntry(text);
  const clusters = entriesOf(document, 'clusters').filter(hasExtension);
  if (clusters.length === 0 && !text.startsWith(`${MARKER}\n`)) {
    throw new UsageError(
      `${path} exists and was not written by crd-controller: choose another file, or move it`,
    );
  }
  const [entry] = clusters;
  const cluster = fieldOf(entry, 'cluster');
  const user = fieldOf(
    entriesOf(document, 'users').find(({ name }) => name === entry?.['name']),
    'user',
  );
  const { token } = user;
  const authority = await authorityOf(textIn(cluster, 'certificate-authority-data'), path, clock);
  const client = {
    certificatePem: textIn(user, 'client-certificate-data'),
    privateKeyPem: textIn(user, 'client-key-data'),
  };
  return {
    document,
    server: URL.parse(String(cluster['server'])) ?? undefined,
    identity:
      authority && typeof token === 'string' && token !== ''
        ? { authority, token, client: isIssued(client, authority) ? client : undefined }
        : undefined,
  };
}

/** Creates a new identity. */
export async function newServerIdentity(): Promise<ServerIdentity> {
  return { authority: await createServerAuthority(), token: randomBytes(32).toString('hex') };
}

/**
 * Writes a kubeconfig to `path`, readable by its owner only. The write is atomic. Entries that others added
 * are kept. A file that this program did not write is not changed.
 *
 * @param authority CA of the server. Its key is written to a file beside `path`, for the next start
 * @returns the absolute path
 * @throws {UsageError} if `path` cannot be written, or if this program did not write it
 */
export async function writeKubeconfig(
  path: string,
  kubeconfig: object,
  authority?: Certificate,
): Promise<string> {
  const target = resolve(path);
  const own = await readOwnKubeconfig(target);
  // The key is written first: without it, the next start would replace the CA.
  if (authority && own?.identity?.authority.privateKeyPem !== authority.privateKeyPem) {
    const keyFile = keyFileOf(target);
    const key = await textOf(keyFile);
    if (key !== undefined && !key.startsWith(`${KEY_MARKER}\n`)) {
      throw new UsageError(
        `${keyFile} exists and was not written by crd-controller: move it, or choose another kubeconfig`,
      );
    }
    await writePrivately(keyFile, `${KEY_MARKER}\n${authority.privateKeyPem}`, key !== undefined);
  }
  const document = merge(own?.document ?? {}, withMark(kubeconfig));
  await writePrivately(target, `${MARKER}\n${stringify(document)}`, own !== undefined);
  return target;
}

/** Writes a kubeconfig to a new folder, which `remove` deletes. */
export async function temporaryKubeconfig(
  kubeconfig: object,
): Promise<{ readonly path: string; remove(): Promise<void> }> {
  const folder = await newTemporaryFolder('crd-controller-');
  const path = await writeKubeconfig(join(folder, 'kubeconfig'), kubeconfig);
  return { path, remove: () => rm(folder, { recursive: true, force: true }) };
}

type Entry = Readonly<Record<string, unknown>>;

function keyFileOf(path: string): string {
  return `${resolve(path)}.ca-key`;
}

async function authorityOf(
  certificatePem: string,
  path: string,
  clock: Pick<Clock, 'now'>,
): Promise<Certificate | undefined> {
  const file = keyFileOf(path);
  const privateKeyPem = (await textOf(file))?.replace(`${KEY_MARKER}\n`, '');
  if (privateKeyPem === undefined) return undefined;
  const { mode } = await stat(file);
  if ((mode & 0o077) !== 0 && process.platform !== 'win32') return undefined;
  try {
    const certificate = new X509Certificate(certificatePem);
    const isCurrent = Date.parse(certificate.validTo) - clock.now() > SHORTEST_VALIDITY_MS;
    const belongs = certificate.checkPrivateKey(createPrivateKey(privateKeyPem));
    return isCurrent && belongs ? { certificatePem, privateKeyPem } : undefined;
  } catch {
    // The file was edited: the server gets a new identity.
    return undefined;
  }
}

/** A certificate is valid as long as its CA, so that its time need not be compared. */
function isIssued({ certificatePem, privateKeyPem }: Certificate, authority: Certificate): boolean {
  try {
    const certificate = new X509Certificate(certificatePem);
    return (
      certificate.checkPrivateKey(createPrivateKey(privateKeyPem)) &&
      certificate.verify(new X509Certificate(authority.certificatePem).publicKey)
    );
  } catch {
    // There is none, or the file was edited: the server issues another one.
    return false;
  }
}

function withMark(kubeconfig: object): Entry {
  const extensions = [{ name: EXTENSION, extension: { provider: 'crd-controller' } }];
  const document: Entry = { ...kubeconfig };
  return {
    ...document,
    clusters: entriesOf(document, 'clusters').map((entry) =>
      withFields(entry, 'cluster', { extensions }),
    ),
  };
}

/** Entries of `own` replace those of the same name, except a namespace that the user set. */
function merge(former: Entry, own: Entry): Entry {
  const list = (key: string) => {
    const entries = entriesOf(own, key);
    const names = new Set(entries.map(({ name }) => name));
    return [...entries, ...entriesOf(former, key).filter(({ name }) => !names.has(name))];
  };
  const contexts = list('contexts').map((entry) => {
    const chosen = entriesOf(former, 'contexts').find(({ name }) => name === entry['name']);
    const { namespace } = fieldOf(chosen, 'context');
    return namespace === undefined ? entry : withFields(entry, 'context', { namespace });
  });
  return { ...former, ...own, clusters: list('clusters'), users: list('users'), contexts };
}

function parseEntry(text: string): Entry {
  try {
    const document: unknown = parse(text, { logLevel: 'silent' });
    return isRecord(document) ? document : {};
  } catch {
    return {};
  }
}

function entriesOf(document: Entry, key: string): readonly Entry[] {
  const list = document[key];
  return Array.isArray(list) ? (list as readonly unknown[]).filter(isRecord) : [];
}

/** Returns the text in Base64 of a field, or ''. */
function textIn(entry: Entry, field: string): string {
  const value = entry[field];
  return typeof value === 'string' ? Buffer.from(value, 'base64').toString() : '';
}

function fieldOf(entry: Entry | undefined, field: string): Entry {
  const value = entry?.[field];
  return isRecord(value) ? value : {};
}

function withFields(entry: Entry, field: string, more: Entry): Entry {
  return { ...entry, [field]: { ...fieldOf(entry, field), ...more } };
}

function hasExtension(entry: Entry): boolean {
  return entriesOf(fieldOf(entry, 'cluster'), 'extensions').some(({ name }) => name === EXTENSION);
}

/** Returns the text of the file; undefined if there is none. */
async function textOf(path: string): Promise<string | undefined> {
  try {
    // Reading a FIFO would wait for its writer.
    if ((await stat(path)).isFile()) return await readFile(path, 'utf8');
  } catch (cause) {
    if (hasErrorCode(cause, 'ENOENT')) return undefined;
    throw new UsageError(`Could not read ${path} to check whether it can be overwritten`, {
      cause,
    });
  }
  throw new UsageError(`${path} is not a regular file: choose another file`);
}

/** @param isReplaced whether to replace a file; a file created in the meantime is never replaced */
async function writePrivately(target: string, text: string, isReplaced: boolean): Promise<void> {
  const draft = join(dirname(target), `.${randomUUID()}.kubeconfig`);
  try {
    const file = await open(draft, 'wx', 0o600);
    try {
      await file.writeFile(text);
    } finally {
      await file.close();
    }
    // Unlike a rename, a link fails if the file exists.
    await (isReplaced ? rename(draft, target) : link(draft, target));
  } catch (error) {
    throw new UsageError(`Could not write the kubeconfig ${target}: ${reasonOf(error, target)}`);
  } finally {
    await rm(draft, { force: true });
  }
}

function reasonOf(error: unknown, target: string): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return `the folder ${dirname(target)} does not exist`;
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return `no permission to write to the folder ${dirname(target)}`;
    case 'EEXIST':
      return 'another process has just created it';
    default:
      return errorText(error);
  }
}
