{{/* The Deployments, each also the name of its Lease and of its fence: one for each capability, so that no token has the
rights of two. */}}
{{- define "foresail.deployments" -}}
{{- $names := list -}}
{{- if .Values.schedules.enabled -}}{{- $names = append $names "foresail-schedules" -}}{{- end -}}
{{- if .Values.selfService.enabled -}}{{- $names = append $names "foresail-self-service" -}}{{- end -}}
{{- if .Values.primers.enabled -}}{{- $names = append $names "foresail-primers" -}}{{- end -}}
{{- if .Values.proof.restoreChecks -}}{{- $names = append $names "foresail-checks" -}}{{- end -}}
{{- if .Values.protection.enabled -}}{{- $names = append $names "foresail-protection" -}}{{- end -}}
{{- if .Values.rollback.enabled -}}{{- $names = append $names "foresail-rollback" -}}{{- end -}}
{{- if not $names -}}
{{- fail "nothing is enabled: set schedules.enabled, selfService.enabled, primers.enabled, proof.restoreChecks, protection.enabled or rollback.enabled" -}}
{{- end -}}
{{ join " " $names }}
{{- end }}

{{/* The values of a Deployment's ServiceAccount. */}}
{{- define "foresail.accountValues" -}}
{{- $values := .root.Values -}}
{{- get (dict "foresail-schedules" $values.schedules "foresail-self-service" $values.selfService "foresail-primers" $values.primers "foresail-checks" $values.proof "foresail-protection" $values.protection "foresail-rollback" $values.rollback "foresail-console" $values.console) .name | dig "serviceAccount" dict | toYaml -}}
{{- end }}

{{/* The ServiceAccount of a Deployment: each has its own. */}}
{{- define "foresail.account" -}}
{{- $taken := dict -}}
{{- range $field, $values := dict "schedules" .root.Values.schedules "selfService" .root.Values.selfService "primers" .root.Values.primers "proof" .root.Values.proof "protection" .root.Values.protection "rollback" .root.Values.rollback "console" .root.Values.console -}}
{{- $name := $values.serviceAccount.name -}}
{{- if hasKey $taken $name -}}
{{- fail (printf "%s.serviceAccount.name: must differ from %s.serviceAccount.name, or either token has the rights of both" $field (get $taken $name)) -}}
{{- end -}}
{{- $_ := set $taken $name $field -}}
{{- end -}}
{{ (include "foresail.accountValues" . | fromYaml).name }}
{{- end }}

{{/* What every object of a Deployment is found by. A selector cannot be changed later, so the names differ. */}}
{{- define "foresail.selector" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}

{{- define "foresail.labels" -}}
{{ include "foresail.selector" . }}
app.kubernetes.io/part-of: foresail
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end }}

{{/* Those of a pod; the chart's own win, because the selector of its Deployment needs them. */}}
{{- define "foresail.podLabels" -}}
{{ merge (include "foresail.labels" . | fromYaml) .root.Values.podLabels | toYaml }}
{{- end }}

{{/* Those of PrometheusRules and ServiceMonitors, which a Prometheus selects by labels of its own. */}}
{{- define "foresail.monitoringLabels" -}}
{{ merge (include "foresail.labels" . | fromYaml) .root.Values.monitoring.labels | toYaml }}
{{- end }}

{{/* The alerts of a file, indented; with monitoring.runbookUrl each links to its section of that page. */}}
{{- define "foresail.rules" -}}
{{- $text := .root.Files.Get (printf "rules/%s.yaml" .name) }}
{{- with .root.Values.monitoring.runbookUrl }}
{{- $page := . }}
{{- $file := fromYaml $text }}
{{- range $file.groups }}
{{- range .rules }}
{{- $_ := set .annotations "runbook_url" (printf "%s#%s" $page (lower .alert)) }}
{{- end }}
{{- end }}
{{- $text = toYaml $file }}
{{- end }}
{{- $text | indent 2 }}
{{- end }}

{{- define "foresail.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}

{{/* What primers make and delete where capacity is held, in every namespace or in those that primers.namespaces names. */}}
{{- define "foresail.primerWrites" -}}
- apiGroups: [batch]
  resources: [cronjobs]
  verbs: [create, delete{{ if .Values.primers.annotations }}, patch{{ end }}] # method CronJob; patch: the record of annotations
- apiGroups: [""]
  resources: [pods]
  verbs: [create, delete] # placeholders
- apiGroups: [autoscaling.x-k8s.io]
  resources: [capacitybuffers]
  verbs: [create, patch, delete]
- apiGroups: [""]
  resources: [podtemplates]
  verbs: [create, delete] # of CapacityBuffers
{{- end }}

{{/* As whom the API server knows a Deployment of ours, self-service, and Velero. */}}
{{- define "foresail.userOf" -}}
system:serviceaccount:{{ .root.Release.Namespace }}:{{ include "foresail.account" . }}
{{- end }}

{{- define "foresail.user" -}}
{{ include "foresail.userOf" (dict "root" . "name" "foresail-self-service") }}
{{- end }}

{{- define "foresail.rollbackUser" -}}
{{ include "foresail.userOf" (dict "root" . "name" "foresail-rollback") }}
{{- end }}

{{- define "foresail.checksUser" -}}
{{ include "foresail.userOf" (dict "root" . "name" "foresail-checks") }}
{{- end }}

{{- define "foresail.veleroUser" -}}
system:serviceaccount:{{ .Values.veleroNamespace }}:{{ .Values.veleroServiceAccount }}
{{- end }}

{{/* Whether the API server can set the requester of a request itself. */}}
{{- define "foresail.stampsRequester" -}}
{{- if eq .Values.selfService.requesterStamp "Always" -}}
true
{{- else if and (eq .Values.selfService.requesterStamp "Auto") (.Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy") -}}
true
{{- end -}}
{{- end }}

{{/* Who asks, who asked before, and whether this write asks for something. */}}
{{- define "foresail.requesterVariables" -}}
- name: groups
  expression: "request.userInfo.?groups.orValue([])"
- name: requester
  expression: 'object.metadata.?annotations[?"foresail.dev/requester"].orValue("")'
- name: requesterGroups # one per line
  expression: 'object.metadata.?annotations[?"foresail.dev/requester-groups"].orValue("")'
- name: oldRequester
  expression: >-
    oldObject == null ? "" : oldObject.metadata.?annotations[?"foresail.dev/requester"].orValue("")
- name: oldGroups
  expression: >-
    oldObject == null ? "" : oldObject.metadata.?annotations[?"foresail.dev/requester-groups"].orValue("")
- name: asks
  expression: >- {{- include "foresail.asks" . | nindent 4 }}
{{- end }}

{{/*
Whether a write asks for something: a new request, another spec, or a restored request that is released. Whoever calls
off a Rollback that runs does not: it goes on, back to how it was, as its requester.
*/}}
{{- define "foresail.asks" -}}
request.operation == "CREATE"
|| object.?spec.orValue({}) != oldObject.?spec.orValue({})
&& !(request.resource.resource == "rollbacks"
&& !(oldObject.?status.?phase.orValue("New") in ["New", "Planned", "Completed", "Undone", "Refused"]))
|| ("velero.io/restore-name" in oldObject.metadata.?labels.orValue({})
&& oldObject.metadata.?labels[?"velero.io/restore-name"] != object.metadata.?labels[?"velero.io/restore-name"])
{{- end }}

{{/* The condition that leaves out the operators' writes in the name of others: what they create, and what keeps it. */}}
{{- define "foresail.notInAnothersName" -}}
expression: >-
  !(request.userInfo.username == "{{ include "foresail.rollbackUser" . }}" && request.operation == "CREATE"
  && request.resource.resource in ["nonadminbackups", "nonadminrestores", "nonadmindownloadrequests"])
  && !(request.userInfo.username == "{{ include "foresail.user" . }}"
  && request.resource.resource in ["nonadminbackups", "nonadminschedules"]
  && (request.operation == "CREATE" || !({{ include "foresail.changesRequester" . | nindent 2 | trim }})))
{{- end }}

{{/* Whether an update changes the requester. */}}
{{- define "foresail.changesRequester" -}}
["foresail.dev/requester", "foresail.dev/requester-groups"].exists(key,
object.metadata.?annotations[?key].orValue("") != oldObject.metadata.?annotations[?key].orValue(""))
{{- end }}

{{/* Whether the operator alone writes a label or an annotation with this key. */}}
{{- define "foresail.isReserved" -}}
(key.startsWith("openshift.io/oadp-") || key.startsWith("foresail.dev/"))
{{- end }}

{{/* Whether an object has more labels or annotations than admission searches: a search of 25,000 keys takes a second. */}}
{{- define "foresail.hasTooManyKeys" -}}
[object.metadata.?labels.orValue({}), object.metadata.?annotations.orValue({})].exists(keys, keys.size() > 200)
{{- end }}

{{- define "foresail.tooManyKeys" -}}
it has more than 200 labels or annotations: leave at most 200 of each
{{- end }}

{{/* The labels of a namespace with self-service; the operator sets them to refused or allowed. */}}
{{- define "foresail.annotationsLabel" -}}
foresail.dev/velero-annotations
{{- end }}

{{- define "foresail.fileSystemLabel" -}}
foresail.dev/file-system-backup
{{- end }}

{{/* Whether Velero acts on an annotation with this key; whether it copies files because of it. */}}
{{- define "foresail.isForVelero" -}}
key.startsWith("snapshot.velero.io/") || key.contains("hook.backup.velero.io/") || key.contains("hook.restore.velero.io/") || key in ["velero.io/restore-status", "backup.velero.io/must-include-additional-items", "restore.velero.io/must-include-additional-items", "velero.io/csi-volumesnapshot-handle", "velero.io/csi-volumegroupsnapshot-handle", "velero.io/csi-driver-name", "velero.io/csi-vsc-deletion-policy", "velero.io/csi-volumesnapshot-class", "velero.io/csi-volume-group-snapshot-class", "velero.io/volume-snapshot-name", "velero.io/data-upload-name"]
{{- end }}

{{- define "foresail.isForFiles" -}}
key == "backup.velero.io/backup-volumes"
{{- end }}

{{/* Whether a map is too large to be searched: no valid key of an annotation has more than 317 characters, but the API
server validates no key of a CronJob's jobTemplate.metadata. */}}
{{- define "foresail.isTooLarge" -}}
annotations.size() > 200 || annotations.exists(key, key.size() > 317)
{{- end }}

{{/* The annotations of an object, of the pods that it makes, and of the Jobs that it makes. Kinds without a template are
not searched for one: the fields of a custom resource may be anything. */}}
{{- define "foresail.annotationMaps" -}}
request.resource.group in ["", "apps", "batch"] && request.resource.resource in ["deployments", "statefulsets",
"daemonsets", "replicasets", "replicationcontrollers", "jobs", "cronjobs", "podtemplates"]
? [{{ . }}.?metadata.?annotations.orValue({}),
{{ . }}.?spec.?template.?metadata.?annotations.orValue({}),
{{ . }}.?template.?metadata.?annotations.orValue({}),
{{ . }}.?spec.?jobTemplate.?metadata.?annotations.orValue({}),
{{ . }}.?spec.?jobTemplate.?spec.?template.?metadata.?annotations.orValue({})]
: [{{ . }}.?metadata.?annotations.orValue({})]
{{- end }}

{{/* Whether a claim has the annotation that spec.storageClassName replaced, which wins over it. */}}
{{- define "foresail.claimHasLegacyClass" -}}
("volume.beta.kubernetes.io/storage-class" in {{ . }}.metadata.?annotations.orValue({}))
{{- end }}

{{/* The Schedules whose runs may have hooks, as a CEL list: those that the values name or, if none are named and there
is an API server to ask, those that have hooks now. */}}
{{- define "foresail.schedulesWithHooks" -}}
{{- $names := list -}}
{{- if kindIs "slice" .Values.schedules.withHooks -}}
{{- $names = .Values.schedules.withHooks -}}
{{- else if .Capabilities.APIVersions.Has "velero.io/v1/Schedule" -}}
{{- range (lookup "velero.io/v1" "Schedule" .Values.veleroNamespace "").items -}}
{{- if dig "spec" "template" "hooks" "resources" list . -}}
{{- $names = append $names .metadata.name -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{ toJson $names }}
{{- end }}

{{/* The namespaces without self-service, as a CEL list. */}}
{{- define "foresail.excludedNamespaces" -}}
{{ concat .Values.selfService.excludedNamespaces (list "kube-*" .Values.veleroNamespace .Release.Namespace) | uniq | toJson }}
{{- end }}

{{/* The last value of a flag in primers.flags, or what holds without it. */}}
{{- define "foresail.primerFlag" -}}
{{- $flag := printf "--primer-%s=" .flag -}}
{{- $text := .otherwise -}}
{{- range .root.Values.primers.flags -}}
{{- if hasPrefix $flag . -}}{{- $text = trimPrefix $flag . -}}{{- end -}}
{{- end -}}
{{ $text }}
{{- end }}

{{/* The command of primer CronJobs, as a CEL list. */}}
{{- define "foresail.holdCommand" -}}
{{- $words := list -}}
{{- range .Values.primers.flags -}}
{{- if hasPrefix "--primer-hold-command=" . -}}{{- $words = append $words (trimPrefix "--primer-hold-command=" .) -}}{{- end -}}
{{- end -}}
{{ $words | default (list "foresail" "hold") | toJson }}
{{- end }}
