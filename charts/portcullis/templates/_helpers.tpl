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
{{- with .image.registry }}{{ . }}/{{ end }}{{ .image.repository }}
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

{{- define "portcullis.podSecurityContext" -}}
runAsNonRoot: true
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "portcullis.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
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
{{- end -}}
