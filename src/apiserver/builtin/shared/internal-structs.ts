import { escapeHtml, withSortedKeys } from '../../../util/go-format.ts';
import type { JsonObject } from '../../../util/json-value.ts';
import { objectsIn } from '../../../util/json-value.ts';
import { unifiedDiff } from '../../../util/unified-diff.ts';
import { isRecord } from '../../../util/values.ts';

type Fields = Readonly<JsonObject>;

/**
 * The internal types of upstream by `NAME FIELD:TYPE…`, which messages and annotations show. They are
 * from `types.go` in `pkg/apis/core` and `pkg/apis/autoscaling` of Kubernetes, which is under the
 * Apache License 2.0. A field has `=JSON` if its name in the API is another one but for its first
 * letter. Types are `s`, `n` and `b` of Go, amounts `q`, ports `i`, maps `m`, selectors `l`, metadata `e`.
 */
const STRUCTS = `
PodSpec Volumes:[]Volume InitContainers:[]Container Containers:[]Container EphemeralContainers:[]EphemeralContainer RestartPolicy:s TerminationGracePeriodSeconds:*n ActiveDeadlineSeconds:*n DNSPolicy=dnsPolicy:s NodeSelector:m ServiceAccountName:s DeprecatedServiceAccount=serviceAccount:s AutomountServiceAccountToken:*b NodeName:s HostNetwork:b HostPID:b HostIPC:b ShareProcessNamespace:*b SecurityContext:*PodSecurityContext ImagePullSecrets:[]LocalObjectReference Hostname:s Subdomain:s Affinity:*Affinity SchedulerName:s Tolerations:[]Toleration HostAliases:[]HostAlias PriorityClassName:s Priority:*n DNSConfig=dnsConfig:*PodDNSConfig ReadinessGates:[]PodReadinessGate RuntimeClassName:*s EnableServiceLinks:*b PreemptionPolicy:*s Overhead:m TopologySpreadConstraints:[]TopologySpreadConstraint SetHostnameAsFQDN:*b OS=os:*PodOS HostUsers:*b SchedulingGates:[]PodSchedulingGate ResourceClaims:[]PodResourceClaim Resources:*ResourceRequirements HostnameOverride:*s SchedulingGroup:*PodSchedulingGroup EvictionResponders:[]EvictionResponder
Volume Name:s HostPath:*HostPathVolumeSource EmptyDir:*EmptyDirVolumeSource GCEPersistentDisk=gcePersistentDisk:*GCEPersistentDiskVolumeSource AWSElasticBlockStore=awsElasticBlockStore:*AWSElasticBlockStoreVolumeSource GitRepo:*GitRepoVolumeSource Secret:*SecretVolumeSource NFS=nfs:*NFSVolumeSource ISCSI=iscsi:*ISCSIVolumeSource Glusterfs:*GlusterfsVolumeSource PersistentVolumeClaim:*PersistentVolumeClaimVolumeSource RBD=rbd:*RBDVolumeSource FlexVolume:*FlexVolumeSource Cinder:*CinderVolumeSource CephFS=cephfs:*CephFSVolumeSource Flocker:*FlockerVolumeSource DownwardAPI:*DownwardAPIVolumeSource FC=fc:*FCVolumeSource AzureFile:*AzureFileVolumeSource ConfigMap:*ConfigMapVolumeSource VsphereVolume:*VsphereVirtualDiskVolumeSource Quobyte:*QuobyteVolumeSource AzureDisk:*AzureDiskVolumeSource PhotonPersistentDisk:*PhotonPersistentDiskVolumeSource Projected:*ProjectedVolumeSource PortworxVolume:*PortworxVolumeSource ScaleIO:*ScaleIOVolumeSource StorageOS=storageos:*StorageOSVolumeSource CSI=csi:*CSIVolumeSource Ephemeral:*EphemeralVolumeSource Image:*ImageVolumeSource
HostPathVolumeSource Path:s Type:*s
EmptyDirVolumeSource Medium:s SizeLimit:*q Mode:*n
GCEPersistentDiskVolumeSource PDName=pdName:s FSType=fsType:s Partition:n ReadOnly:b
AWSElasticBlockStoreVolumeSource VolumeID:s FSType=fsType:s Partition:n ReadOnly:b
GitRepoVolumeSource Repository:s Revision:s Directory:s
SecretVolumeSource SecretName:s Items:[]KeyToPath DefaultMode:*n Optional:*b DefaultUser:*n
KeyToPath Key:s Path:s Mode:*n User:*n
NFSVolumeSource Server:s Path:s ReadOnly:b
ISCSIVolumeSource TargetPortal:s IQN=iqn:s Lun:n ISCSIInterface=iscsiInterface:s FSType=fsType:s ReadOnly:b Portals:[]s DiscoveryCHAPAuth=chapAuthDiscovery:b SessionCHAPAuth=chapAuthSession:b SecretRef:*LocalObjectReference InitiatorName:*s
LocalObjectReference Name:s
GlusterfsVolumeSource EndpointsName=endpoints:s Path:s ReadOnly:b
PersistentVolumeClaimVolumeSource ClaimName:s ReadOnly:b
RBDVolumeSource CephMonitors=monitors:[]s RBDImage=image:s FSType=fsType:s RBDPool=pool:s RadosUser=user:s Keyring:s SecretRef:*LocalObjectReference ReadOnly:b
FlexVolumeSource Driver:s FSType=fsType:s SecretRef:*LocalObjectReference ReadOnly:b Options:m
CinderVolumeSource VolumeID:s FSType=fsType:s ReadOnly:b SecretRef:*LocalObjectReference
CephFSVolumeSource Monitors:[]s Path:s User:s SecretFile:s SecretRef:*LocalObjectReference ReadOnly:b
FlockerVolumeSource DatasetName:s DatasetUUID:s
DownwardAPIVolumeSource Items:[]DownwardAPIVolumeFile DefaultMode:*n DefaultUser:*n
DownwardAPIVolumeFile Path:s FieldRef:*ObjectFieldSelector ResourceFieldRef:*ResourceFieldSelector Mode:*n User:*n
ObjectFieldSelector APIVersion=apiVersion:s FieldPath:s
ResourceFieldSelector ContainerName:s Resource:s Divisor:q
FCVolumeSource TargetWWNs:[]s Lun:*n FSType=fsType:s ReadOnly:b WWIDs=wwids:[]s
AzureFileVolumeSource SecretName:s ShareName:s ReadOnly:b
ConfigMapVolumeSource Name:s Items:[]KeyToPath DefaultMode:*n Optional:*b DefaultUser:*n
VsphereVirtualDiskVolumeSource VolumePath:s FSType=fsType:s StoragePolicyName:s StoragePolicyID:s
QuobyteVolumeSource Registry:s Volume:s ReadOnly:b User:s Group:s Tenant:s
AzureDiskVolumeSource DiskName:s DataDiskURI=diskURI:s CachingMode:*s FSType=fsType:*s ReadOnly:*b Kind:*s
PhotonPersistentDiskVolumeSource PdID:s FSType=fsType:s
ProjectedVolumeSource Sources:[]VolumeProjection DefaultMode:*n DefaultUser:*n
VolumeProjection Secret:*SecretProjection DownwardAPI:*DownwardAPIProjection ConfigMap:*ConfigMapProjection ServiceAccountToken:*ServiceAccountTokenProjection ClusterTrustBundle:*ClusterTrustBundleProjection PodCertificate:*PodCertificateProjection
SecretProjection Name:s Items:[]KeyToPath Optional:*b
DownwardAPIProjection Items:[]DownwardAPIVolumeFile
ConfigMapProjection Name:s Items:[]KeyToPath Optional:*b
ServiceAccountTokenProjection Audience:s ExpirationSeconds:*n Path:s User:*n
ClusterTrustBundleProjection Name:*s SignerName:*s LabelSelector:*l Optional:*b Path:s User:*n
PodCertificateProjection SignerName:s KeyType:s MaxExpirationSeconds:*n CredentialBundlePath:s KeyPath:s CertificateChainPath:s UserAnnotations:m User:*n
PortworxVolumeSource VolumeID:s FSType=fsType:s ReadOnly:b
ScaleIOVolumeSource Gateway:s System:s SecretRef:*LocalObjectReference SSLEnabled=sslEnabled:b ProtectionDomain:s StoragePool:s StorageMode:s VolumeName:s FSType=fsType:s ReadOnly:b
StorageOSVolumeSource VolumeName:s VolumeNamespace:s FSType=fsType:s ReadOnly:b SecretRef:*LocalObjectReference
CSIVolumeSource Driver:s ReadOnly:*b FSType=fsType:*s VolumeAttributes:m NodePublishSecretRef:*LocalObjectReference
EphemeralVolumeSource VolumeClaimTemplate:*PersistentVolumeClaimTemplate
PersistentVolumeClaimTemplate ~=metadata:e Spec:PersistentVolumeClaimSpec
PersistentVolumeClaimSpec AccessModes:[]s Selector:*l Resources:VolumeResourceRequirements VolumeName:s StorageClassName:*s VolumeMode:*s DataSource:*TypedLocalObjectReference DataSourceRef:*TypedObjectReference VolumeAttributesClassName:*s
VolumeResourceRequirements Limits:m Requests:m
TypedLocalObjectReference APIGroup=apiGroup:*s Kind:s Name:s
TypedObjectReference APIGroup=apiGroup:*s Kind:s Name:s Namespace:*s
ImageVolumeSource Reference:s PullPolicy:s
Container Name:s Image:s Command:[]s Args:[]s WorkingDir:s Ports:[]ContainerPort EnvFrom:[]EnvFromSource Env:[]EnvVar Resources:ResourceRequirements ResizePolicy:[]ContainerResizePolicy RestartPolicy:*s RestartPolicyRules:[]ContainerRestartRule VolumeMounts:[]VolumeMount VolumeDevices:[]VolumeDevice LivenessProbe:*Probe ReadinessProbe:*Probe StartupProbe:*Probe Lifecycle:*Lifecycle TerminationMessagePath:s TerminationMessagePolicy:s ImagePullPolicy:s SecurityContext:*SecurityContext Stdin:b StdinOnce:b TTY=tty:b
ContainerPort Name:s HostPort:n ContainerPort:n Protocol:s HostIP:s
EnvFromSource Prefix:s ConfigMapRef:*ConfigMapEnvSource SecretRef:*SecretEnvSource
ConfigMapEnvSource Name:s Optional:*b
SecretEnvSource Name:s Optional:*b
EnvVar Name:s Value:s ValueFrom:*EnvVarSource
EnvVarSource FieldRef:*ObjectFieldSelector ResourceFieldRef:*ResourceFieldSelector ConfigMapKeyRef:*ConfigMapKeySelector SecretKeyRef:*SecretKeySelector FileKeyRef:*FileKeySelector
ConfigMapKeySelector Name:s Key:s Optional:*b
SecretKeySelector Name:s Key:s Optional:*b
FileKeySelector VolumeName:s Path:s Key:s Optional:*b
ResourceRequirements Limits:m Requests:m Claims:[]ResourceClaim
ResourceClaim Name:s Request:s
ContainerResizePolicy ResourceName:s RestartPolicy:s
ContainerRestartRule Action:s ExitCodes:*ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes Operator:s Values:[]n
VolumeMount Name:s ReadOnly:b RecursiveReadOnly:*s MountPath:s SubPath:s MountPropagation:*s SubPathExpr:s BindMountOptions:[]s
VolumeDevice Name:s DevicePath:s
Probe Exec:*ExecAction HTTPGet=httpGet:*HTTPGetAction TCPSocket=tcpSocket:*TCPSocketAction GRPC=grpc:*GRPCAction InitialDelaySeconds:n TimeoutSeconds:n PeriodSeconds:n SuccessThreshold:n FailureThreshold:n TerminationGracePeriodSeconds:*n
ExecAction Command:[]s
HTTPGetAction Path:s Port:i Host:s Scheme:s HTTPHeaders=httpHeaders:[]HTTPHeader Protocol:*s
HTTPHeader Name:s Value:s
TCPSocketAction Port:i Host:s
GRPCAction Port:n Service:*s Mode:*s
Lifecycle PostStart:*LifecycleHandler PreStop:*LifecycleHandler StopSignal:*s
LifecycleHandler Exec:*ExecAction HTTPGet=httpGet:*HTTPGetAction TCPSocket=tcpSocket:*TCPSocketAction Sleep:*SleepAction
SleepAction Seconds:n
SecurityContext Capabilities:*Capabilities Privileged:*b SELinuxOptions=seLinuxOptions:*SELinuxOptions WindowsOptions:*WindowsSecurityContextOptions RunAsUser:*n RunAsGroup:*n RunAsNonRoot:*b ReadOnlyRootFilesystem:*b AllowPrivilegeEscalation:*b ProcMount:*s SeccompProfile:*SeccompProfile AppArmorProfile:*AppArmorProfile
Capabilities Add:[]s Drop:[]s
SELinuxOptions User:s Role:s Type:s Level:s
WindowsSecurityContextOptions GMSACredentialSpecName=gmsaCredentialSpecName:*s GMSACredentialSpec=gmsaCredentialSpec:*s RunAsUserName:*s HostProcess:*b
SeccompProfile Type:s LocalhostProfile:*s
AppArmorProfile Type:s LocalhostProfile:*s
EphemeralContainer Name:s Image:s Command:[]s Args:[]s WorkingDir:s Ports:[]ContainerPort EnvFrom:[]EnvFromSource Env:[]EnvVar Resources:ResourceRequirements ResizePolicy:[]ContainerResizePolicy RestartPolicy:*s RestartPolicyRules:[]ContainerRestartRule VolumeMounts:[]VolumeMount VolumeDevices:[]VolumeDevice LivenessProbe:*Probe ReadinessProbe:*Probe StartupProbe:*Probe Lifecycle:*Lifecycle TerminationMessagePath:s TerminationMessagePolicy:s ImagePullPolicy:s SecurityContext:*SecurityContext Stdin:b StdinOnce:b TTY=tty:b TargetContainerName:s
PodSecurityContext SELinuxOptions=seLinuxOptions:*SELinuxOptions WindowsOptions:*WindowsSecurityContextOptions RunAsUser:*n RunAsGroup:*n RunAsNonRoot:*b SupplementalGroups:[]n SupplementalGroupsPolicy:*s FSGroup=fsGroup:*n Sysctls:[]Sysctl FSGroupChangePolicy=fsGroupChangePolicy:*s SeccompProfile:*SeccompProfile AppArmorProfile:*AppArmorProfile SELinuxChangePolicy=seLinuxChangePolicy:*s
Sysctl Name:s Value:s
Affinity NodeAffinity:*NodeAffinity PodAffinity:*PodAffinity PodAntiAffinity:*PodAntiAffinity
NodeAffinity RequiredDuringSchedulingIgnoredDuringExecution:*NodeSelector PreferredDuringSchedulingIgnoredDuringExecution:[]PreferredSchedulingTerm
NodeSelector NodeSelectorTerms:[]NodeSelectorTerm
NodeSelectorTerm MatchExpressions:[]NodeSelectorRequirement MatchFields:[]NodeSelectorRequirement
NodeSelectorRequirement Key:s Operator:s Values:[]s
PreferredSchedulingTerm Weight:n Preference:NodeSelectorTerm
PodAffinity RequiredDuringSchedulingIgnoredDuringExecution:[]PodAffinityTerm PreferredDuringSchedulingIgnoredDuringExecution:[]WeightedPodAffinityTerm
PodAffinityTerm LabelSelector:*l Namespaces:[]s TopologyKey:s NamespaceSelector:*l MatchLabelKeys:[]s MismatchLabelKeys:[]s
WeightedPodAffinityTerm Weight:n PodAffinityTerm:PodAffinityTerm
PodAntiAffinity RequiredDuringSchedulingIgnoredDuringExecution:[]PodAffinityTerm PreferredDuringSchedulingIgnoredDuringExecution:[]WeightedPodAffinityTerm
Toleration Key:s Operator:s Value:s Effect:s TolerationSeconds:*n
HostAlias IP=ip:s Hostnames:[]s
PodDNSConfig Nameservers:[]s Searches:[]s Options:[]PodDNSConfigOption
PodDNSConfigOption Name:s Value:*s
PodReadinessGate ConditionType:s
TopologySpreadConstraint MaxSkew:n TopologyKey:s WhenUnsatisfiable:s LabelSelector:*l MinDomains:*n NodeAffinityPolicy:*s NodeTaintsPolicy:*s MatchLabelKeys:[]s
PodOS Name:s
PodSchedulingGate Name:s
PodResourceClaim Name:s ResourceClaimName:*s ResourceClaimTemplateName:*s
PodSchedulingGroup PodGroupName:*s
EvictionResponder Name:s Priority:*n
PersistentVolumeSource GCEPersistentDisk=gcePersistentDisk:*GCEPersistentDiskVolumeSource AWSElasticBlockStore=awsElasticBlockStore:*AWSElasticBlockStoreVolumeSource HostPath:*HostPathVolumeSource Glusterfs:*GlusterfsPersistentVolumeSource NFS=nfs:*NFSVolumeSource RBD=rbd:*RBDPersistentVolumeSource ISCSI=iscsi:*ISCSIPersistentVolumeSource Cinder:*CinderPersistentVolumeSource CephFS=cephfs:*CephFSPersistentVolumeSource FC=fc:*FCVolumeSource Flocker:*FlockerVolumeSource FlexVolume:*FlexPersistentVolumeSource AzureFile:*AzureFilePersistentVolumeSource VsphereVolume:*VsphereVirtualDiskVolumeSource Quobyte:*QuobyteVolumeSource AzureDisk:*AzureDiskVolumeSource PhotonPersistentDisk:*PhotonPersistentDiskVolumeSource PortworxVolume:*PortworxVolumeSource ScaleIO=scaleIO:*ScaleIOPersistentVolumeSource Local:*LocalVolumeSource StorageOS=storageos:*StorageOSPersistentVolumeSource CSI=csi:*CSIPersistentVolumeSource
GlusterfsPersistentVolumeSource EndpointsName=endpoints:s Path:s ReadOnly:b EndpointsNamespace:*s
RBDPersistentVolumeSource CephMonitors=monitors:[]s RBDImage=image:s FSType=fsType:s RBDPool=pool:s RadosUser=user:s Keyring:s SecretRef:*SecretReference ReadOnly:b
ISCSIPersistentVolumeSource TargetPortal:s IQN=iqn:s Lun:n ISCSIInterface=iscsiInterface:s FSType=fsType:s ReadOnly:b Portals:[]s DiscoveryCHAPAuth=chapAuthDiscovery:b SessionCHAPAuth=chapAuthSession:b SecretRef:*SecretReference InitiatorName:*s
CinderPersistentVolumeSource VolumeID:s FSType=fsType:s ReadOnly:b SecretRef:*SecretReference
CephFSPersistentVolumeSource Monitors:[]s Path:s User:s SecretFile:s SecretRef:*SecretReference ReadOnly:b
FlexPersistentVolumeSource Driver:s FSType=fsType:s SecretRef:*SecretReference ReadOnly:b Options:m
AzureFilePersistentVolumeSource SecretName:s ShareName:s ReadOnly:b SecretNamespace:*s
ScaleIOPersistentVolumeSource Gateway:s System:s SecretRef:*SecretReference SSLEnabled=sslEnabled:b ProtectionDomain:s StoragePool:s StorageMode:s VolumeName:s FSType=fsType:s ReadOnly:b
LocalVolumeSource Path:s FSType=fsType:*s
StorageOSPersistentVolumeSource VolumeName:s VolumeNamespace:s FSType=fsType:s ReadOnly:b SecretRef:*ObjectReference
CSIPersistentVolumeSource Driver:s VolumeHandle:s ReadOnly:b FSType=fsType:s VolumeAttributes:m ControllerPublishSecretRef:*SecretReference NodeStageSecretRef:*SecretReference NodePublishSecretRef:*SecretReference ControllerExpandSecretRef:*SecretReference NodeExpandSecretRef:*SecretReference
SecretReference Name:s Namespace:s
ObjectReference Kind:s Namespace:s Name:s UID=uid:s APIVersion=apiVersion:s ResourceVersion:s FieldPath:s
EventSource Component:s Host:s
HorizontalPodAutoscalerBehavior ScaleUp:*HPAScalingRules ScaleDown:*HPAScalingRules
HPAScalingRules StabilizationWindowSeconds:*n SelectPolicy:*s Policies:[]HPAScalingPolicy Tolerance:*q
HPAScalingPolicy Type:s Value:n PeriodSeconds:n
`;

const TYPES = new Map(
  STRUCTS.trim()
    .split('\n')
    .map((line) => {
      const [name = '', ...fields] = line.split(' ');
      return [name, fields] as const;
    }),
);

/** Returns the changed lines of two values of an internal type. */
export function structDiff(type: string, before: Fields, after: Fields): string {
  return unifiedDiff(structText(type, before, 1), structText(type, after, 1));
}

/**
 * Returns a value of an internal type as upstream encodes it, in JSON.
 *
 * @param indent of each line; without it, the text is one line
 */
export function structText(type: string, value: unknown, indent?: number): string {
  return escapeHtml(JSON.stringify(internalStruct(type, value), undefined, indent));
}

const ZEROS: Fields = { s: '', n: 0, b: false, q: '0', i: 0 };

/** Returns a value with the names of the fields in an internal type, in its order. */
export function internalStruct(type: string, value: unknown): unknown {
  if (type.startsWith('*')) {
    return (value ?? null) === null ? null : internalStruct(type.slice(1), value);
  }
  if (type.startsWith('[]')) {
    const items: unknown[] = Array.isArray(value) ? value : [];
    return items.length > 0 ? items.map((item) => internalStruct(type.slice(2), item)) : null;
  }
  const fields = TYPES.get(type);
  if (fields) return structOf(fields, isRecord(value) ? value : {});
  if (type === 'm') {
    return isRecord(value) && Object.keys(value).length > 0 ? withSortedKeys(value) : null;
  }
  return type === 'l' && isRecord(value) ? selectorOf(value) : (value ?? ZEROS[type]);
}

function structOf(fields: readonly string[], value: Fields): JsonObject {
  const struct: JsonObject = {};
  for (const field of fields) {
    const [names = '', type = ''] = field.split(':');
    const [name = '', json = `${name.charAt(0).toLowerCase()}${name.slice(1)}`] = names.split('=');
    // Metadata is embedded.
    if (type === 'e') Object.assign(struct, value[json]);
    else struct[name] = internalStruct(type, value[json]);
  }
  return struct;
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
