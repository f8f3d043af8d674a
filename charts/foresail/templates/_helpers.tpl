{{/* What every object of the operator itself is found by. */}}
{{- define "foresail.selector" -}}
app.kubernetes.io/name: foresail
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "foresail.labels" -}}
{{ include "foresail.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "foresail.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
