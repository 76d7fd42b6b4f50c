import { QUANTITY } from '../../../api/formats.ts';
import { escapeHtml, withSortedKeys } from '../../../util/go-format.ts';
import type { JsonObject } from '../../../util/json-value.ts';
import { objectsIn } from '../../../util/json-value.ts';
import { unifiedDiff } from '../../../util/unified-diff.ts';
import { isRecord } from '../../../util/values.ts';
import type { MessageField, MessageType } from '../../protobuf/decode-message.ts';
import { ZERO_VALUES, messageTypeOf } from '../../protobuf/decode-message.ts';
import { fieldsInJson } from '../../protobuf/go-schema.ts';

type Fields = Readonly<JsonObject>;

/**
 * The names of fields in the internal types of upstream (`types.go` in `pkg/apis/core` of Kubernetes) by their names in
 * the API, or by message and name in the API. Others are the name in the API with an initial capital.
 */
const GO_NAMES: ReadonlyMap<string, string> = new Map(
  `apiGroup=APIGroup apiVersion=APIVersion awsElasticBlockStore=AWSElasticBlockStore cephfs=CephFS
  chapAuthDiscovery=DiscoveryCHAPAuth chapAuthSession=SessionCHAPAuth csi=CSI diskURI=DataDiskURI dnsConfig=DNSConfig
  dnsPolicy=DNSPolicy endpoints=EndpointsName fc=FC fsGroup=FSGroup fsGroupChangePolicy=FSGroupChangePolicy
  fsType=FSType gcePersistentDisk=GCEPersistentDisk gmsaCredentialSpec=GMSACredentialSpec
  gmsaCredentialSpecName=GMSACredentialSpecName grpc=GRPC httpGet=HTTPGet httpHeaders=HTTPHeaders ip=IP iqn=IQN
  iscsi=ISCSI iscsiInterface=ISCSIInterface nfs=NFS os=OS pdName=PDName rbd=RBD seLinuxChangePolicy=SELinuxChangePolicy
  seLinuxOptions=SELinuxOptions serviceAccount=DeprecatedServiceAccount sslEnabled=SSLEnabled storageos=StorageOS
  tcpSocket=TCPSocket tty=TTY uid=UID wwids=WWIDs
  core.v1.RBDVolumeSource.image=RBDImage core.v1.RBDVolumeSource.monitors=CephMonitors
  core.v1.RBDVolumeSource.pool=RBDPool core.v1.RBDVolumeSource.user=RadosUser
  core.v1.RBDPersistentVolumeSource.image=RBDImage core.v1.RBDPersistentVolumeSource.monitors=CephMonitors
  core.v1.RBDPersistentVolumeSource.pool=RBDPool core.v1.RBDPersistentVolumeSource.user=RadosUser`
    .split(/\s+/)
    .map((entry): [string, string] => {
      const [name = '', goName = ''] = entry.split('=');
      return [name, goName];
    }),
);

/** Returns the changed lines of two values of the internal type of a message. */
export function structDiff(message: string, before: Fields, after: Fields): string {
  return unifiedDiff(structText(message, before, 1), structText(message, after, 1));
}

/**
 * Returns a value of the internal type of a message as upstream encodes it, in JSON.
 *
 * @param indent of each line; without it, the text is one line
 */
export function structText(message: string, value: unknown, indent?: number): string {
  return escapeHtml(JSON.stringify(internalStruct(message, value), undefined, indent));
}

/**
 * Returns a value of a message, such as `core.v1.PodSpec`, as upstream encodes the value of its internal type: with the
 * names of its fields in Go, and with zero values.
 */
export function internalStruct(message: string, value: unknown): unknown {
  return structOf(messageTypeOf(message), value);
}

function structOf(type: MessageType, value: unknown): JsonObject {
  const fields = isRecord(value) ? value : {};
  const struct: JsonObject = {};
  for (const field of fieldsInJson(type)) {
    const { name = '' } = field;
    const capital = `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
    const goName = GO_NAMES.get(`${type.name}.${name}`) ?? GO_NAMES.get(name) ?? capital;
    if (isMetadata(field)) Object.assign(struct, fields[name]);
    else struct[goName] = memberOf(field, fields[name]);
  }
  return struct;
}

/** Internal types embed the metadata, whose members are those of the value. */
function isMetadata({ type }: MessageField): boolean {
  return typeof type === 'object' && type.message === 'meta.v1.ObjectMeta';
}

function memberOf({ label, pointer, type }: MessageField, value: unknown): unknown {
  switch (label) {
    case 'list':
      return Array.isArray(value) && value.length > 0
        ? value.map((item) => valueOf(type, item))
        : null;
    case 'map':
      return isRecord(value) && Object.keys(value).length > 0 ? withSortedKeys(value) : null;
    case 'single':
      return pointer && (value ?? null) === null ? null : valueOf(type, value);
  }
}

function valueOf(type: MessageField['type'], value: unknown): unknown {
  if (typeof type === 'string') return value ?? ZERO_VALUES[type];
  switch (type.message) {
    case QUANTITY:
      return value ?? '0';
    case 'intstr.IntOrString':
      return value ?? 0;
    case 'meta.v1.LabelSelector':
      return isRecord(value) ? selectorOf(value) : value;
    default:
      return structOf(messageTypeOf(type.message), value);
  }
}

/** A selector has the names of its fields in JSON, in the order of its type. */
function selectorOf(selector: Fields): JsonObject {
  const expressions = objectsIn(selector, 'matchExpressions');
  return {
    ...(isRecord(selector['matchLabels']) && {
      matchLabels: withSortedKeys(selector['matchLabels']),
    }),
    ...(expressions.length > 0 && {
      matchExpressions: expressions.map(({ key, operator, values }) => ({ key, operator, values })),
    }),
  };
}
