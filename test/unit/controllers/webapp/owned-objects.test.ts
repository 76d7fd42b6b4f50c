import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { WebApp } from '../../../../src/api/generated/web-app.ts';
import {
  buildWebAppDeployment,
  buildService,
  deploymentName,
  webAppSelector,
  webAppProblem,
  serviceName,
} from '../../../../src/controllers/webapp/owned-objects.ts';

function aWebApp(name: string, spec: object = {}): WebApp {
  return {
    apiVersion: 'jiajunhuang.com/v1',
    kind: 'WebApp',
    metadata: {
      name,
      namespace: 'shop',
      uid: 'uid-of-webapp',
      resourceVersion: '1',
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
    spec: { version: '1.25', replicas: 2, ...spec },
  };
}

const OWNER = {
  apiVersion: 'jiajunhuang.com/v1',
  kind: 'WebApp',
  name: 'web',
  uid: 'uid-of-webapp',
  controller: true,
  blockOwnerDeletion: true,
};
const SELECTOR = {
  'app.kubernetes.io/instance': 'web',
  'app.kubernetes.io/managed-by': 'webapp-controller',
};
const LABELS = { ...SELECTOR, 'app.kubernetes.io/version': '1.25' };

describe('The owned objects of a WebApp', () => {
  it('include a Deployment with its image and replicas', () => {
    assert.deepEqual(buildWebAppDeployment(aWebApp('web')), {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { namespace: 'shop', ownerReferences: [OWNER], name: 'web', labels: LABELS },
      spec: {
        replicas: 2,
        selector: { matchLabels: SELECTOR },
        template: {
          metadata: { labels: LABELS },
          spec: {
            automountServiceAccountToken: false,
            containers: [
              {
                name: 'app',
                image: 'nginx:1.25',
                ports: [{ name: 'http', containerPort: 80, protocol: 'TCP' }],
              },
            ],
          },
        },
      },
    });
    const { spec } = buildWebAppDeployment(aWebApp('web', { image: 'shop:3' }));
    assert.equal(spec?.template.spec?.containers[0]?.image, 'shop:3');
  });

  it('include a Service that selects the Pods of the Deployment', () => {
    assert.deepEqual(buildService(aWebApp('web')), {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { namespace: 'shop', ownerReferences: [OWNER], name: 'web', labels: LABELS },
      spec: {
        type: 'ClusterIP',
        selector: SELECTOR,
        ports: [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 'http' }],
      },
    });
    assert.equal(
      webAppSelector(aWebApp('web')),
      'app.kubernetes.io/instance=web,app.kubernetes.io/managed-by=webapp-controller',
    );
  });

  it('have a valid version label for any version', () => {
    const label = (version: string) =>
      buildService(aWebApp('web', { version })).metadata.labels?.['app.kubernetes.io/version'];
    assert.equal(label('1.0+build'), '1.0-build');
    assert.equal(label('1.0 (beta)'), '1.0-beta');
    assert.equal(label('+1_0.a-b+'), '1_0.a-b');
    assert.equal(label('++'), '');
    assert.ok((label('1'.repeat(100))?.length ?? 0) <= 63);
  });

  it('have a selector that does not change with the version', () => {
    const of = (version: string) =>
      buildWebAppDeployment(aWebApp('web', { version })).spec?.selector;
    assert.deepEqual(of('1'), of('2'));
  });
});

describe('The names of the owned objects of a WebApp', () => {
  it('are the name of the WebApp if it is valid', () => {
    assert.equal(deploymentName(aWebApp('web')), 'web');
    assert.equal(serviceName(aWebApp('web')), 'web');
    assert.equal(serviceName(aWebApp('a'.repeat(63))), 'a'.repeat(63));
  });

  it('have a unique hash if the name of the WebApp is not valid for a Service', () => {
    const names = ['1web', 'web.shop', 'a'.repeat(64), 'web.'].map((name) =>
      serviceName(aWebApp(name)),
    );
    for (const name of names) assert.match(name, /^webapp-[0-9a-f]{10}$/);
    assert.equal(new Set(names).size, names.length);
  });
});

describe('problemOf rejects a WebApp', () => {
  for (const [what, spec] of [
    ['without a version', { version: '' }],
    ['with a version that is not a tag, and no image', { version: '1.0+build' }],
    ['with a version that starts with a dot, and no image', { version: '.1' }],
    ['with a tag that is too long', { version: 'a'.repeat(129) }],
    ['with a negative number of replicas', { replicas: -1 }],
    ['with too many replicas', { replicas: 1001 }],
  ] as const) {
    it(what, () => {
      assert.match(webAppProblem(aWebApp('web', spec)) ?? '', /^spec\./);
    });
  }

  it('but accepts the bounds of the fields', () => {
    for (const spec of [
      {},
      { version: '1.0+build', image: 'shop:3' },
      { version: 'a'.repeat(128) },
      { replicas: 0 },
      { replicas: 1000 },
    ]) {
      assert.equal(webAppProblem(aWebApp('web', spec)), undefined);
    }
  });
});
