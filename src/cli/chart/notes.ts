/**
 * Returns what Helm prints after an installation and an upgrade.
 *
 * @param isNamespaced whether the chart has the value `namespaces`
 * @param isConverting whether the program converts objects between versions
 */
export function chartNotes(program: string, isNamespaced: boolean, isConverting: boolean): string {
  const kubectl = 'kubectl -n {{ .Release.Namespace }}';
  // With permissions in some namespaces only, the release has no role for scrapers.
  const [ifEverywhere, end] = isNamespaced
    ? ['\n{{- if not .Values.namespaces }}', '\n{{- end }}']
    : ['', ''];
  const unreadable = isConverting
    ? `

Do the same before an uninstallation, which keeps the objects: without the program, those that are stored in another version
cannot be read.`
    : '';
  return `${program} {{ .Chart.AppVersion }} runs in the namespace {{ .Release.Namespace }}:

  ${kubectl} rollout status deployment/${program}
  ${kubectl} logs deployment/${program}

The namespace should enforce the Pod Security level "restricted", with which the Pods comply:

  kubectl label namespace {{ .Release.Namespace }} pod-security.kubernetes.io/enforce=restricted${ifEverywhere}

Prometheus needs the permission to scrape:

  kubectl create clusterrolebinding prometheus-reads-${program} \\
    --clusterrole=${program}-metrics-reader --serviceaccount=NAMESPACE:SERVICEACCOUNT${end}
{{- if .Values.crds.install }}

An upgrade replaces the CustomResourceDefinitions. Before one that no longer has a version of a kind, rewrite the stored
objects in the storage version, with your permissions:

  npx crd-controller migrate PLURAL.GROUP${unreadable}
{{- end }}
`;
}
