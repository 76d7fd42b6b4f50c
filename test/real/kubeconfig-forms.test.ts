import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { parse } from 'yaml';
import { FormFolder, RecordingServer, requestBy } from '../support/kubeconfig/bench.ts';
import type { Form } from '../support/kubeconfig/forms.ts';
import { ACCEPTED, ANONYMOUS, combinations, REFUSED } from '../support/kubeconfig/forms.ts';
import { jwt, OidcServer } from '../support/kubeconfig/oidc-server.ts';
import { findKubectl } from '../support/kubectl.ts';
import { needsReal } from '../support/skip.ts';

const skip = needsReal('with kubectl');

async function start(t: TestContext) {
  const server = await RecordingServer.start();
  const folder = await FormFolder.create(server.authority, server.ports);
  t.after(() => {
    folder.close();
    return server.close();
  });
  const byKubectl = async (form: Form, kubeconfig: string): Promise<string> => {
    const [environment, flags] = form.files
      ? [{ KUBECONFIG: kubeconfig }, []]
      : [{}, [`--kubeconfig=${kubeconfig}`]];
    const args = ['get', '--raw', '/api', '--request-timeout=5s', ...flags];
    const child = spawn(findKubectl() ?? '', args, {
      env: { PATH: process.env['PATH'], HOME: folder.path, GOGC: 'off', ...environment },
      stdio: 'ignore',
    });
    await once(child, 'close');
    return server.take() ?? 'refused';
  };
  const byUs = (form: Form, kubeconfig: string): Promise<string> =>
    requestBy(form, kubeconfig, folder, server, 10_000);
  return { folder, byKubectl, byUs };
}

test('kubectl accepts and refuses the kubeconfigs of our table', { skip }, async (t) => {
  const { folder, byKubectl, byUs } = await start(t);
  const differing: string[] = [];
  const compare = async (form: Form, expected: string) => {
    const kubectl = await byKubectl(form, folder.write(form));
    if (kubectl !== expected) {
      differing.push(`${form.name}: kubectl ${kubectl}, expected ${expected}`);
    }
  };
  for (const form of ACCEPTED) await compare(form, form.sends ?? 'Bearer abc');
  for (const form of [...REFUSED, ...ANONYMOUS]) await compare(form, 'refused');
  for (const form of combinations(60)) {
    const ours = await byUs(form, folder.write(form));
    // kubectl asks for a user name where other programs are anonymous.
    await compare(form, ours.startsWith('anonymous') ? 'refused' : ours);
  }
  assert.deepEqual(differing, []);
});

test(
  'kubectl renews an ID token by the same requests, and stores the same',
  { skip },
  async (t) => {
    const { folder, byKubectl, byUs } = await start(t);
    const expired = { 'id-token': jwt(1), 'refresh-token': 'refresh-0' };
    const configs: readonly Readonly<Record<string, string>>[] = [
      expired,
      { 'refresh-token': 'refresh-0' },
      { 'id-token': jwt(1) },
      { 'refresh-token': 'old' },
      { ...expired, 'client-secret': 'wrong' },
      { ...expired, 'idp-certificate-authority-data': '' },
    ];
    for (const authentication of ['basic', 'body'] as const) {
      for (const config of configs) {
        const runs = [];
        for (const send of [byKubectl, byUs]) {
          const provider = await OidcServer.start();
          provider.authentication = authentication;
          const form = { name: 'oidc', user: provider.provider(config) };
          const kubeconfig = folder.write(form);
          const sent = await send(form, kubeconfig);
          const [{ user }] = (parse(readFileSync(kubeconfig, 'utf8')) as Stored).users;
          const { 'id-token': idToken, 'refresh-token': refreshToken } =
            user['auth-provider'].config;
          // We do not ask again if the provider knows the client but not the refresh token.
          const requests = sent === 'refused' ? [] : provider.requests;
          runs.push({ sent, idToken, refreshToken, requests });
          await provider.close();
        }
        assert.deepEqual(runs[1], runs[0], `${authentication} ${JSON.stringify(config)}`);
      }
    }
  },
);

interface Stored {
  readonly users: readonly [
    { readonly user: { readonly 'auth-provider': { readonly config: Record<string, string> } } },
  ];
}
