import { fileURLToPath } from 'node:url';
import { DEPLOYMENTS, PODS } from '../../api/builtin.ts';
import type { ObjectName } from '../../api/object-key.ts';
import type { Resource } from '../../api/resource.ts';
import { collectionPath, objectPath } from '../../api/resource.ts';
import { applyManifests } from '../../client/apply/apply.ts';
import type { Client } from '../../client/client.ts';
import type { HttpClient } from '../../client/http-client.ts';
import { parseManifests } from '../../client/apply/manifest.ts';
import type { ManifestText } from '../../client/apply/manifest.ts';
import { readManifests } from '../../client/apply/manifest-files.ts';
import type { Clock } from '../../util/clock.ts';
import type { Table, TablePrinterOptions } from '../common/table-printer.ts';
import { TABLE_TYPE, tableLines } from '../common/table-printer.ts';
import type { DemoPrinter } from './demo-printer.ts';

/** Options of `Kubectl`. */
export interface KubectlOptions {
  readonly client: Client & Pick<HttpClient, 'text'>;
  readonly clock: Clock;
  /** Receives each command and its output. */
  readonly printer: Pick<DemoPrinter, 'command' | 'output'>;
  /** Folder that contains `crds` and `examples`. */
  readonly root: URL;
  readonly namespace: string;
  readonly signal: AbortSignal;
}

/** Name of an object and its resource. */
export interface NamedObject {
  readonly resource: Resource;
  readonly name: string;
}

const FIELD_MANAGER = 'kubectl';

/** Sends the requests of kubectl and prints its output. Tables come from the server. */
export class Kubectl {
  readonly #options: KubectlOptions;

  constructor(options: KubectlOptions) {
    this.#options = options;
  }

  /** `kubectl apply -f crds -f examples/01-count`; resolves to the applied objects. */
  async apply(...paths: readonly string[]): Promise<readonly NamedObject[]> {
    const texts = await this.#read(paths);
    this.#type(`apply ${paths.map((path) => `-f ${path}`).join(' ')}`);
    return this.#apply(texts);
  }

  /** Applies a file of the repository after a replacement, as `sed … | kubectl apply -f -` does. */
  async applyChanged(path: string, pattern: RegExp, replace: () => string): Promise<void> {
    const texts = await this.#read([path]);
    // Called after the file was read, because the replacement can depend on the current time.
    const replacement = replace();
    const { printer } = this.#options;
    printer.command(`sed 's/${pattern.source}/${replacement}/' ${path} | kubectl apply -f -`);
    await this.#apply(
      texts.map(({ source, text }) => ({ source, text: text.replace(pattern, replacement) })),
    );
  }

  async createDeployment(name: string, image: string): Promise<void> {
    const { client, namespace, signal } = this.#options;
    this.#type(`create deployment ${name} --image=${image}`);
    const labels = { app: name };
    await client.create(
      DEPLOYMENTS,
      {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name, namespace, labels },
        spec: {
          selector: { matchLabels: labels },
          template: { metadata: { labels }, spec: { containers: [{ name: image, image }] } },
        },
      },
      { fieldManager: FIELD_MANAGER, signal },
    );
    this.#print([`${titleOf(DEPLOYMENTS, name)} created`]);
  }

  async scale(resource: Resource, name: string, replicas: number): Promise<void> {
    this.#type(`scale --replicas=${replicas} ${singularOf(resource)}/${name}`);
    await this.#patch(resource, name, { spec: { replicas } }, 'scale');
    this.#print([`${titleOf(resource, name)} scaled`]);
  }

  async patch(resource: Resource, name: string, body: object): Promise<void> {
    this.#type(`patch ${singularOf(resource)} ${name} --type=merge -p '${JSON.stringify(body)}'`);
    await this.#patch(resource, name, body);
    this.#print([`${titleOf(resource, name)} patched`]);
  }

  /** Sets labels; `undefined` removes one. */
  async label(
    resource: Resource,
    name: string,
    labels: Readonly<Record<string, string | undefined>>,
  ): Promise<void> {
    const entries = Object.entries(labels);
    const words = entries.map(
      ([label, value]) => label + (value === undefined ? '-' : `=${value}`),
    );
    this.#type(`label ${singularOf(resource)} ${name} ${words.join(' ')}`);
    const patched = entries.map(([label, value]) => [label, value ?? null]);
    await this.#patch(resource, name, { metadata: { labels: Object.fromEntries(patched) } });
    const isLess = entries.every(([, value]) => value === undefined);
    this.#print([`${titleOf(resource, name)} ${isLess ? 'unlabeled' : 'labeled'}`]);
  }

  async delete(resource: Resource, name: string): Promise<void> {
    const { client, namespace, signal } = this.#options;
    this.#type(`delete ${singularOf(resource)} ${name}`);
    const options = { propagationPolicy: 'Background', signal } as const;
    await client.delete(resource, this.#at(resource, name), options);
    const where = resource.namespaced ? ` from ${namespace} namespace` : '';
    this.#print([`${qualify(resource)} "${name}" deleted${where}`]);
  }

  /** `kubectl get counts,pods` */
  async get(...resources: readonly Resource[]): Promise<void> {
    await this.#get(resources, {});
  }

  /** `kubectl get foos -o wide` */
  async getWide(...resources: readonly Resource[]): Promise<void> {
    await this.#get(resources, { wide: true });
  }

  /** `kubectl get events --field-selector=reason=Synced` */
  async getEvents(selector: string): Promise<void> {
    const path = `/api/v1/namespaces/${this.#options.namespace}/events`;
    this.#type(`get events --field-selector=${selector}`);
    const table = await this.#table(`${path}?fieldSelector=${encodeURIComponent(selector)}`);
    this.#print(tableLines(table));
  }

  /** `kubectl logs example-at-pod`; resolves to the log. */
  async logs(pod: string): Promise<string> {
    const { client, signal } = this.#options;
    this.#type(`logs ${pod}`);
    const log = await client.text({ path: objectPath(PODS, this.#at(PODS, pod), 'log'), signal });
    this.#print(log.trimEnd().split('\n'));
    return log;
  }

  async #get(
    resources: readonly Resource[],
    options: Pick<TablePrinterOptions, 'wide'>,
  ): Promise<void> {
    const { namespace } = this.#options;
    const plurals = resources.map(({ plural }) => plural).join(',');
    this.#type(`get ${plurals}${options.wide ? ' -o wide' : ''}`);
    const tables: (readonly string[])[] = [];
    for (const resource of resources) {
      const table = await this.#table(collectionPath(resource, namespace));
      if (table.rows.length === 0) continue;
      if (tables.length > 0) tables.push(['']);
      const namePrefix = resources.length > 1 ? titleOf(resource, '') : '';
      tables.push(tableLines(table, { ...options, namePrefix }));
    }
    if (tables.length > 0) this.#print(tables.flat());
    else this.#print([`No resources found in ${namespace} namespace.`]);
  }

  #read(paths: readonly string[]): Promise<readonly ManifestText[]> {
    const { root, signal } = this.#options;
    const files = paths.map((path) => fileURLToPath(new URL(path, root)));
    return readManifests(files, { signal });
  }

  async #apply(texts: readonly ManifestText[]): Promise<readonly NamedObject[]> {
    const { client, clock, namespace, signal } = this.#options;
    const applied: NamedObject[] = [];
    const options = { fieldManager: FIELD_MANAGER, namespace, clock, signal };
    for await (const result of applyManifests(client, parseManifests(texts), options)) {
      const { name } = result.manifest.object.metadata;
      if (result.kind === 'rejected') throw new Error(`${name}: ${result.rejection.message}`);
      applied.push({ resource: result.resource, name });
      this.#print([`${titleOf(result.resource, name)} ${result.change}`]);
    }
    return applied;
  }

  async #patch(
    resource: Resource,
    name: string,
    body: object,
    subresource?: 'scale',
  ): Promise<void> {
    const { client, signal } = this.#options;
    const options = { subresource, fieldManager: FIELD_MANAGER, signal };
    await client.patch(resource, this.#at(resource, name), { type: 'merge', body }, options);
  }

  async #table(path: string): Promise<Table> {
    const { client, signal } = this.#options;
    const answer = await client.raw({ path, accept: TABLE_TYPE, signal });
    if (!isTable(answer)) throw new Error(`the response to ${path} is not a Table`);
    return answer;
  }

  #at({ namespaced }: Resource, name: string): ObjectName {
    return namespaced ? { namespace: this.#options.namespace, name } : { name };
  }

  #type(command: string): void {
    this.#options.printer.command(`kubectl ${command}`);
  }

  #print(lines: readonly string[]): void {
    this.#options.printer.output(lines);
  }
}

function singularOf({ kind }: Resource): string {
  return kind.toLowerCase();
}

/** Returns a kind as kubectl prints it: `pod`, `count.demo.mark8s.io`. */
function qualify(resource: Resource): string {
  return `${singularOf(resource)}${resource.group && `.${resource.group}`}`;
}

/** Returns an object as kubectl prints it: `pod/web-0`. */
function titleOf(resource: Resource, name: string): string {
  return `${qualify(resource)}/${name}`;
}

function isTable(answer: unknown): answer is Table {
  return (
    typeof answer === 'object' &&
    answer !== null &&
    'columnDefinitions' in answer &&
    Array.isArray(answer.columnDefinitions) &&
    'rows' in answer &&
    Array.isArray(answer.rows)
  );
}
