import { basename, posix } from 'node:path';
import { parse, parseDocument, stringify, visit } from 'yaml';
import type { Document, ToStringOptions } from 'yaml';
import type { CustomResourceDefinition } from '../../api/builtin.ts';
import type { Draft } from '../../api/object.ts';
import { groupResourceOf } from '../../api/resource.ts';
import type { Resource } from '../../api/resource.ts';
import { hasErrorCode } from '../../util/values.ts';
import type { WebhookEntries } from '../../webhook/declaration.ts';
import { completeDefinition, needsServer, webhookObjects } from '../../webhook/install.ts';
import {
  WEBHOOK_PORT,
  WEBHOOK_PORT_NAME,
  webhookNames,
  webhookRoles,
  webhookRules,
} from '../../webhook/manifests.ts';
import type { WebhookNames } from '../../webhook/manifests.ts';
import type { ManifestPart } from '../flags/options.ts';
import { readFileSync } from 'node:fs';

/** Modifications of an installation; absent: as in the files. */
export interface InstallationOptions {
  /** Namespace of the controller itself. */
  readonly namespace?: string | undefined;
  readonly image?: string | undefined;
  /** Namespaces to watch, with permissions in these only. Empty: all. */
  readonly namespaces?: readonly string[] | undefined;
  /** Controllers to run, with their CRDs and roles. */
  readonly controllers?: readonly InstalledController[] | undefined;
  /** What the webhooks of the program review and convert. */
  readonly webhooks?: WebhookEntries | undefined;
  /** Parts to print. Empty: all. */
  readonly only?: readonly ManifestPart[] | undefined;
}

export interface InstalledController {
  readonly name: string;
  readonly resource: Resource;
  /** If false, the default installation does not contain its permissions. */
  readonly isOnByDefault: boolean;
}

/** Path of the permissions of a program with webhooks. */
export const WEBHOOK_ROLES = 'rbac/webhook/webhook.yaml';

/** Returns the namespace in the files of a program. */
export const systemNamespace = (program: string): string => `${program}-system`;

/**
 * Returns the manifests of an installation as YAML. Documents without modifications keep their text and
 * comments.
 *
 * @param read reads a file of the kustomization
 */
export function installation(
  program: string,
  read: ReadManifest,
  options: InstallationOptions = {},
): string {
  const { only = [] } = options;
  const documents = installationDocuments(program, read, options).filter(
    ({ path }) => only.length === 0 || only.some((part) => path.startsWith(`${part}/`)),
  );
  const header = `# Installation of ${program}, printed by: ${program} manifests\n`;
  return header + documents.map(({ text }) => text).join('---\n');
}

/** Returns the documents of an installation, with all parts, in the order of their application. */
export function installationDocuments(
  program: string,
  read: ReadManifest,
  options: Omit<InstallationOptions, 'only'> = {},
): ManifestFile[] {
  const { controllers, namespaces = [], webhooks } = options;
  const files = selectFiles(read, kustomizationFiles(read), controllers).filter(
    ({ path }) =>
      // The declaration decides, also if a file is older.
      !(webhooks && path.startsWith('webhook/')) &&
      // These grant cluster-wide permissions.
      (namespaces.length === 0 || !path.startsWith('rbac/metrics/')),
  );
  const edits = editsOf(program, options);
  const documents = files.flatMap((file) => {
    const { path } = file;
    const texts = file.text.split(/^---\n/m);
    if (namespaces.length === 0 || !isRoleOfControllers(file)) {
      return texts.map((text) => ({ path, text: applyEdits(text, edits) }));
    }
    // Events about the Lease are created in its namespace.
    const own = isEvents(file) ? [options.namespace ?? systemNamespace(program)] : [];
    return [...new Set([...own, ...namespaces])].flatMap((namespace) =>
      texts.map((text) => ({ path, text: applyEdits(text, [...edits, asRole(namespace)]) })),
    );
  });
  if (!webhooks) return documents;
  return [...documents, ...webhookDocuments(webhooks, namesOf(program, options))];
}

function namesOf(
  program: string,
  { namespace = systemNamespace(program), namespaces }: InstallationOptions,
): WebhookNames {
  return webhookNames(program, namespace, namespaces);
}

/** Returns the objects of the webhooks, in the order of their application. */
export function webhookDocuments(entries: WebhookEntries, names: WebhookNames): ManifestFile[] {
  const roles = needsServer(entries) ? webhookRoles(webhookRules(entries, names), names) : [];
  return [
    ...roles.map((object) => ({ path: WEBHOOK_ROLES, text: stringify(object, GENERATED) })),
    ...webhookObjects(entries, names).map((object) => ({
      path: `webhook/${object.kind.startsWith('ValidatingAdmissionPolicy') ? 'policies' : 'webhooks'}.yaml`,
      text: stringify(object, GENERATED),
    })),
  ];
}

/** Removes the files of other controllers, and adds those of controllers that are off by default. */
function selectFiles(
  read: ReadManifest,
  files: readonly ManifestFile[],
  controllers: readonly InstalledController[] | undefined,
): readonly ManifestFile[] {
  if (!controllers) return files;
  const names = new Set(controllers.map(({ name }) => `${name}.yaml`));
  const crds = new Set(controllers.map(({ resource }) => `${groupResourceOf(resource)}.yaml`));
  const extra = controllers
    .filter(({ isOnByDefault }) => !isOnByDefault)
    .flatMap(({ name }) => componentFiles(read, `rbac/${name}`));
  const kept = files.filter(({ path }) => {
    if (path.startsWith('crds/')) return crds.has(basename(path));
    return !path.startsWith('rbac/controllers/') || names.has(basename(path));
  });
  const beforeEvents = kept.findIndex(isEvents);
  return kept.toSpliced(beforeEvents, 0, ...extra);
}

export function isEvents({ path }: Pick<ManifestFile, 'path'>): boolean {
  return path.startsWith('rbac/events/');
}

export function isRoleOfControllers(file: Pick<ManifestFile, 'path'>): boolean {
  return file.path.startsWith('rbac/controllers/') || isEvents(file);
}

/** Format of the files. */
export const FORMAT: ToStringOptions = {
  lineWidth: 0,
  flowCollectionPadding: false,
  singleQuote: true,
};

/** Format of generated documents: without anchors. */
const GENERATED = { ...FORMAT, aliasDuplicateObjects: false };

/** Modifies a document. */
type Edit = (document: Document) => void;

/** Returns the modified text, or the original text if nothing changed. */
function applyEdits(text: string, edits: readonly Edit[]): string {
  if (edits.length === 0) return text;
  const document = parseDocument(text);
  const asWritten = document.toString(FORMAT);
  for (const edit of edits) edit(document);
  const result = document.toString(FORMAT);
  return result === asWritten ? text : result;
}

function editsOf(program: string, options: InstallationOptions): Edit[] {
  const { namespace, image, namespaces = [], controllers, webhooks } = options;
  const flags = [
    ...(controllers ? [`--controllers=${controllers.map(({ name }) => name).join(',')}`] : []),
    ...(namespaces.length > 0 ? [`--namespaces=${namespaces.join(',')}`] : []),
  ];
  return [
    ...(namespace === undefined ? [] : [inNamespace(systemNamespace(program), namespace)]),
    ...(image === undefined && flags.length === 0 ? [] : [withDeployment(image, flags)]),
    ...(webhooks ? [withConversion(webhooks, namesOf(program, options))] : []),
    ...(webhooks && needsServer(webhooks) ? [withWebhookPort] : []),
  ];
}

function inNamespace(written: string, namespace: string): Edit {
  return (document) =>
    visit(document, {
      Scalar: (_, scalar) => {
        if (scalar.value === written) scalar.value = namespace;
      },
    });
}

function withDeployment(image: string | undefined, flags: readonly string[]): Edit {
  const container = ['spec', 'template', 'spec', 'containers', 0];
  return (document) => {
    if (document.get('kind') !== 'Deployment') return;
    if (image !== undefined) document.setIn([...container, 'image'], image);
    const args = [...container, 'args'];
    if (flags.length > 0 && !document.hasIn(args)) document.setIn(args, document.createNode([]));
    for (const flag of flags) document.addIn(args, flag);
  };
}

/** Adds conversions and rules to CRDs. */
function withConversion(entries: WebhookEntries, names: WebhookNames): Edit {
  return (document) => {
    if (document.get('kind') !== 'CustomResourceDefinition') return;
    const crd = document.toJS() as Draft<CustomResourceDefinition>;
    const { spec } = completeDefinition(crd, entries, names);
    if (spec?.conversion) document.setIn(['spec', 'conversion'], spec.conversion);
    for (const [index, { schema }] of (spec?.versions ?? []).entries()) {
      const rules = schema?.openAPIV3Schema?.['x-kubernetes-validations'];
      const root = ['spec', 'versions', index, 'schema', 'openAPIV3Schema'];
      if (rules) document.setIn([...root, 'x-kubernetes-validations'], rules);
    }
  };
}

/** Adds the port of the webhook server to the Deployment, unless it has one of this name. */
const withWebhookPort: Edit = (document) => {
  if (document.get('kind') !== 'Deployment') return;
  const path = ['spec', 'template', 'spec', 'containers', 0, 'ports'];
  const { ports = [] } = document.toJS().spec.template.spec.containers[0] as {
    readonly ports?: readonly { readonly name?: string }[];
  };
  if (ports.some(({ name }) => name === WEBHOOK_PORT_NAME)) return;
  const port = { name: WEBHOOK_PORT_NAME, containerPort: WEBHOOK_PORT };
  document.setIn(path, [...ports, port]);
};

/** Turns a ClusterRole or its binding into a Role or binding in one namespace. */
function asRole(namespace: string): Edit {
  return (document) => {
    const kind = String(document.get('kind'));
    document.set('kind', kind.replace(/^Cluster/, ''));
    document.setIn(['metadata', 'namespace'], namespace);
    if (document.has('roleRef')) document.setIn(['roleRef', 'kind'], 'Role');
  };
}

/** Returns a function that reads the files of a folder. */
export function readerOf(folder: URL): ReadManifest {
  return (path) => readFileSync(new URL(path, folder), 'utf8');
}

/** File of a kustomization, or a document of it. */
export interface ManifestFile {
  /** Path below the root folder: `rbac/controllers/count.yaml`. */
  readonly path: string;
  readonly text: string;
}

/**
 * Returns the text of a file below the root folder.
 *
 * @throws {Error} if it does not exist
 */
export type ReadManifest = (path: string) => string;

/**
 * Returns the files that the kustomization of `folder` names, directly or through others, in their order.
 *
 * @throws {Error} if a kustomization uses more than `resources`
 */
function kustomizationFiles(read: ReadManifest, folder: string = ''): ManifestFile[] {
  const file = posix.join(folder, 'kustomization.yaml');
  return resourcesIn(file, read(file)).flatMap((resource) => {
    const path = posix.join(folder, resource);
    return path.endsWith('.yaml') ? [{ path, text: read(path) }] : kustomizationFiles(read, path);
  });
}

/** Returns the files that a component names as resources. Its patches are not applied. */
function componentFiles(read: ReadManifest, folder: string): ManifestFile[] {
  const { resources } = parse(read(posix.join(folder, 'kustomization.yaml'))) as {
    readonly resources: readonly string[];
  };
  return resources.map((resource) => {
    const path = posix.join(folder, resource);
    return { path, text: read(path) };
  });
}

function resourcesIn(file: string, text: string): readonly string[] {
  const { resources, apiVersion, kind, ...others } = parse(text) as {
    readonly apiVersion: string;
    readonly kind: string;
    readonly resources: readonly string[];
  };
  const [more] = Object.keys(others);
  if (more !== undefined)
    throw new Error(`${file} has ${more}, which is not supported: use kustomize`);
  if (!Array.isArray(resources))
    throw new Error(`${file}: ${kind} of ${apiVersion} has no resources`);
  return resources;
}

/** Returns the text of a file that a kustomization may lack. */
export function optionalFile(read: ReadManifest, path: string): string | undefined {
  try {
    return read(path);
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}
