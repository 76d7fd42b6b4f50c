import { WEBHOOK_PORT, WEBHOOK_PORT_NAME } from '../../webhook/manifests.ts';
import type { ManifestTemplate } from './manifest-template.ts';
import { BOOLEAN_VALUE, LIST_VALUE, OBJECT_VALUE, TEXT_VALUE, TEXTS_VALUE } from './values.ts';
import type { ChartValue } from './values.ts';

/** What the Deployment of a chart depends on, besides its manifest. */
export interface DeploymentOptions {
  /** Version of the program, which is the default tag of its image. */
  readonly version: string;
  /** Whether the webhooks of the program are on by default; undefined if it serves none. */
  readonly webhooks: boolean | undefined;
  /** Whether the program can be limited to some namespaces. */
  readonly isNamespaced: boolean;
}

/** Condition of everything that the webhook server needs. */
export const IF_WEBHOOKS = '.Values.webhooks.enabled';
/** Condition of what a certificate from a Secret replaces. */
export const IF_OWN_CERTIFICATE = `and ${IF_WEBHOOKS} (not .Values.webhooks.certificateSecret)`;
const IF_GIVEN_CERTIFICATE = `and ${IF_WEBHOOKS} .Values.webhooks.certificateSecret`;

const CERTIFICATE = { name: 'webhook-certificate', mountPath: '/webhook-certificate' };

const POD = ['spec', 'template', 'spec'];
const CONTAINER = [...POD, 'containers', 0];
const ARGS = [...CONTAINER, 'args'];
/** Location of the PriorityClass in a Deployment. */
export const PRIORITY_CLASS_NAME = [...POD, 'priorityClassName'];

/** Turns the Deployment of a program into a template, and returns the values that it uses. */
export function templateDeployment(
  deployment: ManifestTemplate,
  { version, webhooks, isNamespaced }: DeploymentOptions,
): ChartValue[] {
  const values: ChartValue[] = [...imageValues(deployment, version)];
  /** A field that has the value of the manifest by default. */
  const field = (
    path: readonly (string | number)[],
    name: string,
    given: Omit<ChartValue, 'value'>,
    empty: unknown,
  ) => {
    const at = [...path, name];
    const expression = `.Values.${given.path}`;
    values.push({ ...given, value: deployment.get(at) ?? empty });
    const isObject = typeof empty === 'object';
    if (deployment.has(at)) {
      if (isObject) deployment.setValue(at, expression);
      else deployment.setText(at, `{{ ${expression} }}`);
    } else if (isObject) deployment.addOptional(path, name, expression);
    else deployment.addOptionalText(path, name, expression);
  };
  field(
    POD,
    'imagePullSecrets',
    {
      path: 'imagePullSecrets',
      comment: 'Secrets with the credentials of the registry: [{name: registry}].',
      schema: LIST_VALUE,
    },
    [],
  );
  field(
    ['spec'],
    'replicas',
    {
      path: 'replicas',
      comment: 'Number of replicas. One leads; the others are standbys.',
      schema: { type: 'integer', minimum: 0 },
    },
    1,
  );
  field(
    CONTAINER,
    'resources',
    {
      path: 'resources',
      comment: 'Resources of the container. A CPU limit can delay the renewal of the Lease.',
      schema: OBJECT_VALUE,
    },
    {},
  );
  values.push(...argumentValues(deployment, isNamespaced));
  field(
    POD,
    'nodeSelector',
    { path: 'nodeSelector', comment: 'Labels of the nodes.', schema: TEXTS_VALUE },
    {},
  );
  field(
    POD,
    'tolerations',
    { path: 'tolerations', comment: 'Tolerated taints of the nodes.', schema: LIST_VALUE },
    [],
  );
  field(
    POD,
    'affinity',
    {
      path: 'affinity',
      comment: 'Affinity of the Pods, in addition to their spread over nodes.',
      schema: OBJECT_VALUE,
    },
    {},
  );
  field(
    POD,
    'priorityClassName',
    {
      path: 'priorityClassName',
      comment: 'PriorityClass of the Pods. The release does not create that of another name.',
      schema: TEXT_VALUE,
    },
    '',
  );
  deployment.addAnnotations(['spec', 'template', 'metadata'], '.Values.podAnnotations');
  values.push({
    path: 'podAnnotations',
    value: {},
    comment: 'Further annotations of the Pods.',
    schema: TEXTS_VALUE,
  });
  if (webhooks !== undefined) values.push(...webhookValues(deployment, webhooks));
  // The last one of a flag counts.
  deployment.addEntries(ARGS, '.Values.extraArgs');
  return values;
}

function imageValues(deployment: ManifestTemplate, version: string): ChartValue[] {
  const image = deployment.textAt([...CONTAINER, 'image']);
  const [, repository = '', tag = '', digest = ''] =
    /^(.*?)(?::([\w.-]+))?(?:@(sha256:[0-9a-f]{64}))?$/.exec(image) ?? [];
  deployment.setText(
    [...CONTAINER, 'image'],
    '{{ .Values.image.repository }}{{ with .Values.image.digest }}@{{ . }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}',
  );
  const pullPolicy = deployment.textAt([...CONTAINER, 'imagePullPolicy']);
  deployment.addOptionalText(CONTAINER, 'imagePullPolicy', '.Values.image.pullPolicy');
  return [
    {
      path: 'image.repository',
      value: repository,
      comment: 'Registry and name.',
      schema: { ...TEXT_VALUE, minLength: 1 },
    },
    {
      path: 'image.tag',
      value: tag === version ? '' : tag,
      comment: 'Default: the version of the program.',
      schema: TEXT_VALUE,
    },
    {
      path: 'image.digest',
      value: digest,
      comment: 'Digest as in sha256:…, which has precedence over the tag.',
      schema: { ...TEXT_VALUE, pattern: '^(sha256:[0-9a-f]{64})?$' },
    },
    {
      path: 'image.pullPolicy',
      value: pullPolicy,
      comment: 'Always, IfNotPresent or Never. Default: that of Kubernetes.',
      schema: { enum: ['', 'Always', 'IfNotPresent', 'Never'] },
    },
  ];
}

function argumentValues(deployment: ManifestTemplate, isNamespaced: boolean): ChartValue[] {
  const args = deployment.get(ARGS);
  const at = Array.isArray(args) ? args.findIndex((arg) => /^--?v=\d+$/.test(String(arg))) : -1;
  const flag = deployment.textAt([...ARGS, at]);
  if (at >= 0) deployment.setText([...ARGS, at], '-v={{ .Values.logVerbosity }}');
  else deployment.addText(ARGS, '-v={{ .Values.logVerbosity }}', '.Values.logVerbosity');
  if (isNamespaced)
    deployment.addText(
      ARGS,
      '--namespaces={{ join "," .Values.namespaces }}',
      '.Values.namespaces',
    );
  const env = [...CONTAINER, 'env'];
  if (deployment.has(env)) deployment.addEntries(env, '.Values.extraEnv');
  else deployment.addOptional(CONTAINER, 'env', '.Values.extraEnv');
  return [
    {
      path: 'logVerbosity',
      value: Number(/\d+$/.exec(flag)?.[0] ?? 0),
      comment:
        'Log verbosity: 0 start, stop and failures; 2 changes of objects; 4 each sync; 6 requests to the API server.',
      schema: { type: 'integer', minimum: 0 },
    },
    {
      path: 'extraArgs',
      value: [],
      comment: 'Further flags, such as --logging-format=json.',
      schema: { type: 'array', items: { type: 'string', pattern: '^-' } },
    },
    {
      path: 'extraEnv',
      value: [],
      comment: 'Further environment variables. Take secrets from a Secret, by valueFrom.',
      schema: LIST_VALUE,
    },
    ...(isNamespaced ? [NAMESPACES] : []),
  ];
}

const NAMESPACES: ChartValue = {
  path: 'namespaces',
  value: [],
  comment:
    'Namespaces to watch, with a Role in each instead of ClusterRoles. They must exist. Empty: all namespaces.',
  schema: {
    type: 'array',
    uniqueItems: true,
    items: { type: 'string', maxLength: 63, pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$' },
  },
};

function webhookValues(deployment: ManifestTemplate, areOn: boolean): ChartValue[] {
  const ports = (deployment.get([...CONTAINER, 'ports']) ?? []) as readonly {
    readonly name?: string;
  }[];
  const port = ports.findIndex(({ name }) => name === WEBHOOK_PORT_NAME);
  if (port >= 0) deployment.only([...CONTAINER, 'ports', port], IF_WEBHOOKS);
  const { name, mountPath } = CERTIFICATE;
  if (areOn) deployment.addText(ARGS, '--webhook-bind-address=0', `not ${IF_WEBHOOKS}`);
  else deployment.addText(ARGS, `--webhook-bind-address=:${WEBHOOK_PORT}`, IF_WEBHOOKS);
  deployment.addText(ARGS, `--webhook-cert-path=${mountPath}`, IF_GIVEN_CERTIFICATE);
  deployment.addItem(
    [...CONTAINER, 'volumeMounts'],
    { name, mountPath, readOnly: true },
    IF_GIVEN_CERTIFICATE,
  );
  const secret = deployment.text('{{ .Values.webhooks.certificateSecret }}');
  deployment.addItem(
    [...POD, 'volumes'],
    { name, secret: { secretName: secret } },
    IF_GIVEN_CERTIFICATE,
  );
  return [
    {
      path: 'webhooks.enabled',
      value: areOn,
      comment:
        'Whether the program serves them. Objects in another version than the stored one need the conversion webhook.',
      schema: BOOLEAN_VALUE,
    },
    {
      path: 'webhooks.certificateSecret',
      value: '',
      comment:
        'Secret with tls.crt and tls.key, as of a Certificate of cert-manager. Default: the program creates and renews its certificate.',
      schema: TEXT_VALUE,
    },
    {
      path: 'webhooks.annotations',
      value: {},
      comment:
        'Annotations of the webhook configurations and of CRDs with conversions: cert-manager.io/inject-ca-from: NAMESPACE/CERTIFICATE.',
      schema: TEXTS_VALUE,
    },
  ];
}
