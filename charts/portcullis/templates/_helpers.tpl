{{- define "portcullis.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "portcullis.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "portcullis.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "portcullis.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Call with (dict "root" $ "part" "pdp"). */}}
{{- define "portcullis.selector" -}}
app.kubernetes.io/name: {{ include "portcullis.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{- define "portcullis.labels" -}}
{{ include "portcullis.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
portcullis.dev/part: {{ .part }}
{{- with .root.Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Call with (dict "root" $ "image" .Values.pdp.image). */}}
{{- define "portcullis.repository" -}}
{{- with .image.registry | default (.root.Values.global).imageRegistry }}{{ . }}/{{ end }}{{ .image.repository }}
{{- end -}}

{{- define "portcullis.image" -}}
{{- include "portcullis.repository" . -}}
{{- if .image.digest }}@{{ .image.digest }}{{ else }}:{{ .image.tag | default .root.Chart.AppVersion }}{{ end -}}
{{- end -}}

{{/* Call with (dict "root" $ "part" "pdp" "values" .Values.pdp). */}}
{{- define "portcullis.serviceAccount" -}}
{{- if .values.serviceAccount.create -}}
{{- .values.serviceAccount.name | default (printf "%s-%s" (include "portcullis.fullname" .root) .part) -}}
{{- else -}}
{{- .values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* ServiceAccount of the test's sidecar. A person who can make a Pod with it can also mount the PDP's own Secrets, so it adds no right. */}}
{{- define "portcullis.testAccount" -}}
{{- printf "%s-test" (include "portcullis.fullname" .) -}}
{{- end -}}

{{/* Call with the values of a part, or with none. Nobody can take away what Pod Security restricted demands. */}}
{{- define "portcullis.podSecurityContext" -}}
{{- toYaml (merge (dict "runAsNonRoot" true "seccompProfile" (dict "type" "RuntimeDefault")) (.podSecurityContext | default dict)) -}}
{{- end -}}

{{/* Call with the values of a part. */}}
{{- define "portcullis.disruptions" -}}
{{- if kindIs "invalid" .podDisruptionBudget.minAvailable -}}
maxUnavailable: {{ .podDisruptionBudget.maxUnavailable }}
{{- else -}}
minAvailable: {{ .podDisruptionBudget.minAvailable }}
{{- end -}}
{{- end -}}

{{/* Call with the values of a part. */}}
{{- define "portcullis.deploymentAnnotations" -}}
{{- with .deploymentAnnotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "portcullis.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* How a Deployment replaces its Pods: none is missing meanwhile, unless the values say otherwise. */}}
{{- define "portcullis.strategy" -}}
{{- if .values.strategy -}}
{{- toYaml .values.strategy -}}
{{- else -}}
rollingUpdate: {maxUnavailable: 0, maxSurge: 1}
{{- end -}}
{{- end -}}

{{/* A HorizontalPodAutoscaler for a Deployment. Call with (dict "root" $ "part" "pdp" "values" .Values.pdp). */}}
{{- define "portcullis.autoscaler" -}}
{{- $name := printf "%s-%s" (include "portcullis.fullname" .root) .part -}}
{{- if gt (int .values.autoscaling.minReplicas) (int .values.autoscaling.maxReplicas) -}}
{{- fail (printf "%s.autoscaling: minReplicas %d is more than maxReplicas %d" .part (int .values.autoscaling.minReplicas) (int .values.autoscaling.maxReplicas)) -}}
{{- end -}}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ $name }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "portcullis.labels" . | nindent 4 }}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: {{ $name }}}
  minReplicas: {{ .values.autoscaling.minReplicas }}
  maxReplicas: {{ .values.autoscaling.maxReplicas }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target: {type: Utilization, averageUtilization: {{ .values.autoscaling.cpuPercent }}}
  {{- with .values.autoscaling.behavior }}
  behavior: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* IP families of a Service. */}}
{{- define "portcullis.ipFamilies" -}}
ipFamilyPolicy: {{ .Values.ipFamilies.policy }}
{{- with .Values.ipFamilies.families }}
ipFamilies: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/*
Of two entries with one name Kubernetes takes the last, or refuses the object with the name of a field that nobody wrote.
Call with (dict "where" "pdp.extraEnv" "own" NAMES "extra" LIST).
*/}}
{{- define "portcullis.refuseDuplicates" -}}
{{- $where := .where -}}
{{- $seen := dict -}}
{{- range .own -}}
{{- $_ := set $seen . "the chart has one of this name" -}}
{{- end -}}
{{- range .extra -}}
{{- $name := toString .name -}}
{{- if hasKey $seen $name -}}
{{- fail (printf "%s: %s is there twice: %s" $where $name (get $seen $name)) -}}
{{- end -}}
{{- $_ := set $seen $name "remove one of the two" -}}
{{- end -}}
{{- end -}}

{{/* Names of the entries of a YAML list, as JSON. */}}
{{- define "portcullis.names" -}}
{{- $names := list -}}
{{- range fromYamlArray . -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- toJson $names -}}
{{- end -}}

{{/* The environment of a part and its extra variables. Call with (dict "where" "pdp" "values" .Values.pdp "own" YAML). */}}
{{- define "portcullis.env" -}}
{{- include "portcullis.refuseDuplicates" (dict "where" (printf "%s.extraEnv" .where) "own" (include "portcullis.names" .own | fromJsonArray) "extra" .values.extraEnv) -}}
{{- .own -}}
{{- with .values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The same of its mounts and volumes. */}}
{{- define "portcullis.volumeMounts" -}}
{{- .own -}}
{{- with .values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "portcullis.volumes" -}}
{{- include "portcullis.refuseDuplicates" (dict "where" (printf "%s.extraVolumes" .where) "own" (include "portcullis.names" .own | fromJsonArray) "extra" .values.extraVolumes) -}}
{{- .own -}}
{{- with .values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Where the Pods of a part run. */}}
{{- define "portcullis.placement" -}}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
topologySpreadConstraints:
{{- if .values.topologySpreadConstraints }}
{{- toYaml .values.topologySpreadConstraints | nindent 2 }}
{{- else }}
{{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "portcullis.selector" $ | nindent 8 }}
{{- end }}
{{- end }}
{{- end -}}

{{/*
The first ports of sidecars, as JSON: that of Pods from before an update, and the present one. sidecar/injector/pod/ports.ts has the
same list of meshes, and makes the other ports of the first.
*/}}
{{- define "portcullis.firstPorts" -}}
{{- $first := int .Values.injector.sidecar.port -}}
{{- $meshes := dict
  "Istio" (list 15000 15001 15004 15006 15008 15020 15021 15053 15090)
  "Linkerd" (list 4140 4143 4190 4191)
  "Consul" (list 8300 8301 8500 8502 19000 20000 20200 20600)
  "Dapr" (list 3500 7777 9090 50001 50002)
  "Kuma" (list 9000 9901 9902 15001 15006 15010 15053) -}}
{{- range $mesh, $ports := $meshes -}}
{{- range $port := $ports -}}
{{- if include "portcullis.isSidecarPort" (dict "first" $first "port" $port) -}}
{{- fail (printf "injector.sidecar.port: %d gives sidecars the ports %d to %d and %d to %d, and %d is a port of %s; choose another" $first $first (add $first 3) (add $first 14) (add $first 17) $port $mesh) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- list (int .Values.injector.sidecar.formerPort) $first | uniq | toJson -}}
{{- end -}}

{{/* Empty unless the port is a sidecar's. */}}
{{- define "portcullis.isSidecarPort" -}}
{{- $at := sub (int .port) (int .first) -}}
{{- if or (and (ge $at 0) (le $at 3)) (and (ge $at 14) (le $at 17)) -}}true{{- end -}}
{{- end -}}

{{- define "portcullis.native" -}}
{{- if eq (toString .Values.injector.sidecar.nativeSidecars) "auto" -}}
{{- semverCompare ">=1.32.0-0" .Capabilities.KubeVersion.Version -}}
{{- else -}}
{{- .Values.injector.sidecar.nativeSidecars -}}
{{- end -}}
{{- end -}}

{{- define "portcullis.excluded" -}}
{{- append .Values.injector.webhook.excludedNamespaces .Release.Namespace | uniq | sortAlpha | toJson -}}
{{- end -}}

{{/* Namespaces with one of the modes. Call with (dict "root" $ "modes" (list "enabled")). */}}
{{- define "portcullis.protectedSelector" -}}
matchExpressions:
  - {key: portcullis.dev/inject, operator: In, values: {{ toJson .modes }}}
  - {key: kubernetes.io/metadata.name, operator: NotIn, values: {{ include "portcullis.excluded" .root }}}
  {{- with .root.Values.injector.webhook.namespaceSelector.matchExpressions }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .root.Values.injector.webhook.namespaceSelector.matchLabels }}
matchLabels: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* What every route file need not say, as the sidecars get it; empty: nothing. The PDP and the issuer are the chart's own unless the values name others. */}}
{{- define "portcullis.platform" -}}
{{- $platform := .Values.injector.sidecar.platform -}}
{{- if $platform.enabled -}}
{{- $pdp := $platform.pdp -}}
{{- $issuers := $platform.issuers -}}
{{- if and (not $pdp) .Values.pdp.enabled -}}
{{- $pdp = dict "address" (printf "%s-pdp.%s.svc:9090" (include "portcullis.fullname" .) .Release.Namespace) "token_file" "/var/run/secrets/portcullis/token" -}}
{{- if .Values.injector.sidecar.authorities -}}
{{- $_ := set $pdp "ca_file" "/etc/portcullis/authorities/ca.crt" -}}
{{- end -}}
{{- end -}}
{{- if and (not $issuers) .Values.pdp.enabled -}}
{{- $issuers = list (dict "issuer" .Values.pdp.issuer) -}}
{{- end -}}
{{- if not (and $pdp $issuers) -}}
{{- fail "injector.sidecar.platform: pdp and issuers, which no route file can say then, are needed where the chart runs no PDP" -}}
{{- end -}}
{{- $text := dict "pdp" $pdp "issuers" $issuers -}}
{{- with $platform.overridable -}}
{{- $_ := set $text "overridable" . -}}
{{- end -}}
{{- if regexMatch "['$\\\\]" (toRawJson $text) -}}
{{- fail "injector.sidecar.platform must not contain $, quotation marks or backslashes" -}}
{{- end -}}
{{- toRawJson $text -}}
{{- end -}}
{{- end -}}

{{/* The ConfigMap with the namespaces that onboarded themselves, whose Pods may ask the PDP; empty: the PDP knows no cluster. */}}
{{- define "portcullis.callersMap" -}}
{{- if and .Values.onboarding.enabled .Values.pdp.enabled .Values.pdp.grpc.serviceAccounts.issuer -}}
{{- include "portcullis.fullname" . }}-callers
{{- end -}}
{{- end -}}

{{/* A regular expression of the names of namespaces that may have the label; empty: any. */}}
{{- define "portcullis.bounds" -}}
{{- if .Values.onboarding.enabled -}}
{{- if not .Values.onboarding.namespaces -}}
{{- fail "onboarding.namespaces: the names of namespaces that may onboard themselves, such as team-*" -}}
{{- end -}}
^({{ join "|" .Values.onboarding.namespaces | replace "*" "[a-z0-9-]*" }})$
{{- end -}}
{{- end -}}
