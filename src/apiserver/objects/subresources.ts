/** The subresources of a resource. Each has an entry in `SUBRESOURCES`. */
export interface Subresources {
  /** `/status` exists, and only it writes `status`. */
  readonly status?: boolean;
  readonly scale?: ScaleFieldPaths;
  /** `PUT /finalize` writes `spec.finalizers` (Namespace). */
  readonly finalize?: boolean;
  /** `POST /binding` sets `spec.nodeName` (Pod). */
  readonly binding?: boolean;
  /** `POST /eviction` deletes (Pod). */
  readonly eviction?: boolean;
  /** `GET /log` returns the output of a container (Pod). */
  readonly log?: boolean;
  /** `/approval` writes the conditions of a CertificateSigningRequest. */
  readonly approval?: boolean;
  readonly attach?: boolean;
  /** `/ephemeralcontainers` adds containers to a running Pod. */
  readonly ephemeralcontainers?: boolean;
  readonly exec?: boolean;
  readonly portforward?: boolean;
  readonly proxy?: boolean;
  /** `/resize` changes the resources of a Pod's containers. */
  readonly resize?: boolean;
  /** `POST /token` creates a token of a ServiceAccount. */
  readonly token?: boolean;
}

/** The fields that `/scale` reads and writes, as paths in the form of a CRD (`.spec.replicas`). */
export interface ScaleFieldPaths {
  readonly specReplicasPath: string;
  readonly statusReplicasPath: string;
  /** Path of a selector string, or of a `meta/v1` LabelSelector. */
  readonly labelSelectorPath?: string | undefined;
}

export interface SubresourceKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

interface SubresourceTraits {
  readonly verbs: readonly string[];
  /** Differences of its kind from that of the resource. */
  readonly kind?: Partial<SubresourceKind>;
  /** Whether a request may last as long as its client wants. */
  readonly isLongRunning?: boolean;
}

const READ_AND_WRITE = ['get', 'patch', 'update'];
const CONNECT = ['create', 'get'];

/** Verbs and kind of each subresource, for discovery, OpenAPI and metrics. */
const SUBRESOURCES: Readonly<Record<keyof Subresources, SubresourceTraits>> = {
  approval: { verbs: READ_AND_WRITE },
  attach: { verbs: CONNECT, kind: { kind: 'PodAttachOptions' }, isLongRunning: true },
  binding: { verbs: ['create'], kind: { kind: 'Binding' } },
  ephemeralcontainers: { verbs: READ_AND_WRITE },
  eviction: { verbs: ['create'], kind: { group: 'policy', version: 'v1', kind: 'Eviction' } },
  exec: { verbs: CONNECT, kind: { kind: 'PodExecOptions' }, isLongRunning: true },
  finalize: { verbs: ['update'] },
  log: { verbs: ['get'], isLongRunning: true },
  portforward: { verbs: CONNECT, kind: { kind: 'PodPortForwardOptions' }, isLongRunning: true },
  proxy: { verbs: ['create', 'delete', 'get', 'patch', 'update'], isLongRunning: true },
  resize: { verbs: READ_AND_WRITE },
  scale: {
    verbs: READ_AND_WRITE,
    kind: { group: 'autoscaling', version: 'v1', kind: 'Scale' },
  },
  status: { verbs: READ_AND_WRITE },
  token: {
    verbs: ['create'],
    kind: { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' },
  },
};

/** A subresource of a resource. */
export interface Subresource {
  readonly name: keyof Subresources;
  readonly verbs: readonly string[];
  /** Kind of the objects in requests and responses. */
  readonly kind: SubresourceKind;
  /** Whether `kind` is that of the resource. */
  readonly isOwnKind: boolean;
  readonly isLongRunning: boolean;
}

/** Returns the subresources of a resource, by name. */
export function subresourcesOf({
  group,
  version,
  kind,
  subresources,
}: SubresourceKind & { readonly subresources: Subresources }): Subresource[] {
  return subresourceNames.flatMap((name) => {
    if (!subresources[name]) return [];
    const { verbs, kind: other, isLongRunning = false } = SUBRESOURCES[name];
    const options = name === 'proxy' ? { kind: `${kind}ProxyOptions` } : other;
    const ofObjects = { group, version, kind, ...options };
    return [{ name, verbs, kind: ofObjects, isOwnKind: !options, isLongRunning }];
  });
}

const subresourceNames = Object.keys(SUBRESOURCES) as (keyof Subresources)[];

/** Whether a resource has a subresource of this name, which can be any text. */
export function hasSubresource(
  { subresources }: { readonly subresources: Subresources },
  name: string,
): name is keyof Subresources {
  return isSubresource(name) && Object.hasOwn(subresources, name) && Boolean(subresources[name]);
}

/** Whether requests to a subresource may last as long as their clients want. */
export function isLongRunning(name: string | undefined): boolean {
  return name !== undefined && isSubresource(name) && SUBRESOURCES[name].isLongRunning === true;
}

function isSubresource(name: string): name is keyof Subresources {
  return Object.hasOwn(SUBRESOURCES, name);
}
