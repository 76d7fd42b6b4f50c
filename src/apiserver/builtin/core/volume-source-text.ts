import { escapeHtml, withSortedKeys } from '../../../util/go-format.ts';
import type { JsonObject } from '../../../util/json-value.ts';
import { objectIn } from '../../../util/json-value.ts';

/**
 * The sources of a PersistentVolume and their fields, `name=Name`, in the order and with the names of Go's types. A mark is
 * the type of a field that is no text: `?` a boolean, `#` a number, `*` a pointer, a list or a map, and `>` the reference to a
 * Secret.
 */
const SOURCES = `
gcePersistentDisk=GCEPersistentDisk pdName=PDName fsType=FSType partition=Partition# readOnly=ReadOnly?
awsElasticBlockStore=AWSElasticBlockStore volumeID=VolumeID fsType=FSType partition=Partition# readOnly=ReadOnly?
hostPath=HostPath path=Path type=Type*
glusterfs=Glusterfs endpoints=EndpointsName path=Path readOnly=ReadOnly? endpointsNamespace=EndpointsNamespace*
nfs=NFS server=Server path=Path readOnly=ReadOnly?
rbd=RBD monitors=CephMonitors* image=RBDImage fsType=FSType pool=RBDPool user=RadosUser keyring=Keyring secretRef=SecretRef> readOnly=ReadOnly?
iscsi=ISCSI targetPortal=TargetPortal iqn=IQN lun=Lun# iscsiInterface=ISCSIInterface fsType=FSType readOnly=ReadOnly? portals=Portals* chapAuthDiscovery=DiscoveryCHAPAuth? chapAuthSession=SessionCHAPAuth? secretRef=SecretRef> initiatorName=InitiatorName*
cinder=Cinder volumeID=VolumeID fsType=FSType readOnly=ReadOnly? secretRef=SecretRef>
cephfs=CephFS monitors=Monitors* path=Path user=User secretFile=SecretFile secretRef=SecretRef> readOnly=ReadOnly?
fc=FC targetWWNs=TargetWWNs* lun=Lun* fsType=FSType readOnly=ReadOnly? wwids=WWIDs*
flocker=Flocker datasetName=DatasetName datasetUUID=DatasetUUID
flexVolume=FlexVolume driver=Driver fsType=FSType secretRef=SecretRef> readOnly=ReadOnly? options=Options*
azureFile=AzureFile secretName=SecretName shareName=ShareName readOnly=ReadOnly? secretNamespace=SecretNamespace*
vsphereVolume=VsphereVolume volumePath=VolumePath fsType=FSType storagePolicyName=StoragePolicyName storagePolicyID=StoragePolicyID
quobyte=Quobyte registry=Registry volume=Volume readOnly=ReadOnly? user=User group=Group tenant=Tenant
azureDisk=AzureDisk diskName=DiskName diskURI=DataDiskURI cachingMode=CachingMode* fsType=FSType* readOnly=ReadOnly* kind=Kind*
photonPersistentDisk=PhotonPersistentDisk pdID=PdID fsType=FSType
portworxVolume=PortworxVolume volumeID=VolumeID fsType=FSType readOnly=ReadOnly?
scaleIO=ScaleIO gateway=Gateway system=System secretRef=SecretRef> sslEnabled=SSLEnabled? protectionDomain=ProtectionDomain storagePool=StoragePool storageMode=StorageMode volumeName=VolumeName fsType=FSType readOnly=ReadOnly?
local=Local path=Path fsType=FSType*
storageos=StorageOS volumeName=VolumeName volumeNamespace=VolumeNamespace fsType=FSType readOnly=ReadOnly? secretRef=SecretRef>
csi=CSI driver=Driver volumeHandle=VolumeHandle readOnly=ReadOnly? fsType=FSType volumeAttributes=VolumeAttributes* controllerPublishSecretRef=ControllerPublishSecretRef> nodeStageSecretRef=NodeStageSecretRef> nodePublishSecretRef=NodePublishSecretRef> controllerExpandSecretRef=ControllerExpandSecretRef> nodeExpandSecretRef=NodeExpandSecretRef>
`.trim();

const SECRET = fieldsOf('name=Name namespace=Namespace');

/** The reference of this source has a type of its own. */
const STORAGE_OS_SECRET = fieldsOf(
  'kind=Kind namespace=Namespace name=Name uid=UID apiVersion=APIVersion resourceVersion=ResourceVersion fieldPath=FieldPath',
);

interface Field {
  readonly name: string;
  readonly goName: string;
  readonly mark: string;
}

function fieldsOf(text: string): readonly Field[] {
  return [...text.matchAll(/(\w+)=(\w+)([?#*>]?)/g)].map(
    ([, name = '', goName = '', mark = '']) => ({
      name,
      goName,
      mark,
    }),
  );
}

const sources = SOURCES.split('\n').map(fieldsOf);

/** Returns the source of a volume as Go encodes its internal type, which upstream compares in a message. */
export function volumeSourceText(spec: Readonly<JsonObject>): string {
  const shown = sources.map(([source, ...fields]) => [
    source?.goName,
    structOf(objectIn(spec, source?.name ?? ''), fields, source?.name),
  ]);
  return escapeHtml(JSON.stringify(Object.fromEntries(shown), undefined, 1));
}

function structOf(
  value: JsonObject | undefined,
  fields: readonly Field[],
  source?: string,
): JsonObject | null {
  if (!value) return null;
  const secret = source === 'storageos' ? STORAGE_OS_SECRET : SECRET;
  const memberOf = ({ name, mark }: Field) =>
    mark === '>'
      ? structOf(objectIn(value, name), secret)
      : withSortedKeys(value[name] ?? ZEROS[mark]);
  return Object.fromEntries(fields.map((field) => [field.goName, memberOf(field)]));
}

const ZEROS: Readonly<Record<string, unknown>> = { '': '', '?': false, '#': 0, '*': null };
