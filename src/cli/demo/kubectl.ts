import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { PODS } from '../../api/builtin.ts';
import { COUNTS } from '../../api/generated/count.ts';
import type { Draft, KubernetesObject } from '../../api/object.ts';
import type { ObjectName } from '../../api/object-key.ts';
import type { Resource } from '../../api/resource.ts';
import { collectionPath } from '../../api/resource.ts';
import type { Client } from '../../client/client.ts';
import type { Table } from '../table-printer.ts';
import { TABLE_TYPE, tableLines } from '../table-printer.ts';

/**
 * What a person does with kubectl in the story: requests of the same kind, and the same output. The
 * tables are the server's own.
 */
export class Kubectl {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Creates the object that a YAML file describes. */
  async create(resource: Resource, file: URL, namespace?: string): Promise<string> {
    const manifest: Draft<KubernetesObject> = parse(await readFile(file, 'utf8'));
    const metadata = { ...manifest.metadata, ...(namespace ? { namespace } : {}) };
    const stored = await this.#client.create(
      resource,
      { ...manifest, metadata },
      { fieldManager: 'kubectl' },
    );
    return `${kindOf(resource)}/${stored.metadata.name} created`;
  }

  async scale(at: ObjectName, replicas: number): Promise<string> {
    const patch = { type: 'merge', body: { spec: { replicas } } } as const;
    const options = { subresource: 'scale', fieldManager: 'kubectl' };
    await this.#client.patch(COUNTS, at, patch, options);
    return `${kindOf(COUNTS)}/${at.name} scaled`;
  }

  async delete(resource: Resource, at: ObjectName): Promise<string> {
    await this.#client.delete(resource, at, { propagationPolicy: 'Background' });
    return `${kindOf(resource)} "${at.name}" deleted`;
  }

  /** `kubectl get count,pods` */
  async getCountAndPods(namespace: string): Promise<readonly string[]> {
    const tables: (readonly string[])[] = [];
    for (const resource of [COUNTS, PODS]) {
      const table = await this.#table(collectionPath(resource, namespace));
      if (table.rows.length === 0) continue;
      if (tables.length > 0) tables.push(['']);
      tables.push(tableLines(table, { namePrefix: `${kindOf(resource)}/` }));
    }
    return tables.length === 0 ? [`No resources found in ${namespace} namespace.`] : tables.flat();
  }

  /** `kubectl get events` */
  async getEvents(namespace: string): Promise<readonly string[]> {
    return tableLines(await this.#table(`/api/v1/namespaces/${namespace}/events`));
  }

  async #table(path: string): Promise<Table> {
    const answer = await this.#client.raw({ path, accept: TABLE_TYPE });
    if (!isTable(answer)) throw new Error(`${path} was not answered with a Table`);
    return answer;
  }
}

/** As kubectl calls it: `pod`, `count.demo.mark8s.io` */
function kindOf({ kind, group }: Resource): string {
  return group ? `${kind.toLowerCase()}.${group}` : kind.toLowerCase();
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
