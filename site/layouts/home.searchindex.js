{{- /*
The index of the search: one entry for each page, with its sections, that is a
heading and the text up to the next one. It is a script, because a page that is
opened from a folder may not fetch files.
*/ -}}
{{- $entries := slice -}}
{{- $groups := dict -}}
{{- range partialCached "navigation.html" site -}}
  {{- $title := .title -}}
  {{- range .items -}}
    {{- $groups = merge $groups (dict .page.Path $title) -}}
    {{- $item := .title -}}
    {{- range .children }}{{ $groups = merge $groups (dict .Path ($item | strings.FirstUpper)) }}{{ end -}}
  {{- end -}}
{{- end -}}
{{- range $path, $page := partialCached "documents.html" site -}}
  {{- with $page -}}
    {{- if not (hasPrefix $path "site/") -}}
      {{- $sections := slice -}}
      {{- /* A character for private use separates the sections. */ -}}
      {{- range after 1 (split (replaceRE `<h[1-6] id="` "\uE000" .Content) "\uE000") -}}
        {{- with findRESubmatch `(?s)^([^"]*)">(.*?)</h[1-6]>(.*)$` . 1 -}}
          {{- $parts := index . 0 -}}
          {{- $heading := index $parts 2 | plainify | htmlUnescape | strings.TrimSpace -}}
          {{- $text := replaceRE `</(td|th|tr|li|p|pre|div|dt|dd)>` "$0 " (index $parts 3) | plainify | htmlUnescape -}}
          {{- $text = replaceRE `\s+` " " $text | strings.TrimSpace -}}
          {{- $sections = $sections | append (dict "id" (index $parts 1) "heading" $heading "text" $text) -}}
        {{- end -}}
      {{- end -}}
      {{- $entries = $entries | append (dict "url" (strings.TrimPrefix "/" .RelPermalink) "title" (partialCached "title.html" . .Path) "group" (or (index $groups .Path) "") "sections" $sections) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
globalThis.draSearchIndex = {{ $entries | jsonify }};
