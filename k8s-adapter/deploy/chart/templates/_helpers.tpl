{{- define "gangline.selector" -}}
app.kubernetes.io/name: gangline
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gangline.labels" -}}
{{ include "gangline.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "gangline.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{- define "gangline.priorityClass" -}}
{{ .Values.priorityClass.name | default (printf "%s-scheduler" .Release.Name) }}
{{- end }}
