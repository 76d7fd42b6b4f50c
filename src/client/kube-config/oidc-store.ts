import { open, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import type { Document } from 'yaml';
import { parseGoYaml } from '../../util/go-yaml.ts';
import { hasErrorCode } from '../../util/values.ts';
import { decodeKubeConfig } from './kube-config-decoder.ts';
import { KubeConfigError } from './kube-config-error.ts';

/** The tokens of a user with an OpenID Connect provider. */
export interface OidcTokens {
  readonly idToken: string | undefined;
  readonly refreshToken: string | undefined;
}

/** The user of a kubeconfig whose tokens are stored. */
export interface TokenPlace {
  readonly file: string;
  readonly user: string;
}

/** Returns the tokens in the kubeconfig; undefined if they cannot be read. */
export async function readTokens({ file, user }: TokenPlace): Promise<OidcTokens | undefined> {
  try {
    if (!(await stat(file)).isFile()) return undefined;
    return tokensIn(await readFile(file, 'utf8'), { file, user });
  } catch {
    return undefined;
  }
}

function tokensIn(text: string, { file, user }: TokenPlace): OidcTokens | undefined {
  const { users } = decodeKubeConfig(parseGoYaml(text), file);
  const config = users.find(({ name }) => name === user)?.authProvider?.config;
  return (
    config && {
      idToken: config['id-token'] || undefined,
      refreshToken: config['refresh-token'] || undefined,
    }
  );
}

/**
 * Stores tokens in the kubeconfig and keeps the rest of its text. Excludes kubectl by the lock file that it uses, and
 * replaces the file at once, so that no program reads half of it.
 */
export async function storeTokens(place: TokenPlace, tokens: OidcTokens): Promise<void> {
  const file = await realpath(place.file);
  const lock = `${file}.lock`;
  await (await open(lock, 'wx')).close().catch(() => undefined);
  try {
    const text = await withTokens(await readFile(file, 'utf8'), tokens, place);
    const { mode } = await stat(file);
    const temporary = `${file}.tmp`;
    await writeFile(temporary, text, { mode: mode & 0o777, flag: 'wx' });
    try {
      await rename(temporary, file);
    } catch (error) {
      await rm(temporary, { force: true });
      // A file that is mounted cannot be replaced.
      if (!hasErrorCode(error, 'EBUSY')) throw error;
      await writeFile(file, text);
    }
  } finally {
    await rm(lock, { force: true });
  }
}

async function withTokens(text: string, tokens: OidcTokens, place: TokenPlace): Promise<string> {
  const { parseAllDocuments, isMap, isSeq } = await import('yaml');
  const documents = parseAllDocuments(text, { version: '1.1', uniqueKeys: false, merge: true });
  const [document] = Array.isArray(documents) ? (documents as Document[]) : [];
  const users = document?.get('users');
  const index = isSeq(users)
    ? users.items.findIndex((item) => isMap(item) && item.get('name') === place.user)
    : -1;
  const config = ['users', index, 'user', 'auth-provider', 'config'];
  document?.setIn([...config, 'id-token'], tokens.idToken);
  document?.setIn([...config, 'refresh-token'], tokens.refreshToken);
  const changed = documents.map((each) => each.toString({ lineWidth: 0 })).join('');
  const stored = tokensIn(changed, place);
  if (stored?.idToken === tokens.idToken && stored?.refreshToken === tokens.refreshToken) {
    return changed;
  }
  throw new KubeConfigError(
    `${place.file}: the tokens of user ${JSON.stringify(place.user)} cannot be replaced, because they are shared by an anchor. Write them out.`,
  );
}
