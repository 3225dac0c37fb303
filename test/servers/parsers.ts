/** What parsers of other languages read: each is a process that answers a line of input with a line of output. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { go, php, python, qs, qsPath, rack3, ruby, type Sought } from './runtimes.ts'

/** Reads the value of `org`; a line of output is JSON, null when there is none. */
export type Parser = {
  readonly name: string
  readonly seek: () => Sought
  readonly source: string
  readonly file: string | null
}

const GO = (read: string, imports: string): string => `package main
import ("bufio"; "fmt"; "os"; "encoding/json"; ${imports})
func show(v any) { text, _ := json.Marshal(v); fmt.Println(string(text)) }
func main() {
  lines := bufio.NewScanner(os.Stdin)
  lines.Buffer(make([]byte, 1<<20), 1<<20)
  for lines.Scan() { ${read} }
}
`
const RACK =
  'require "rack"; require "json"; STDIN.each_line(chomp: true) { |l| puts((begin; Rack::Utils.parse_nested_query(l)["org"]; rescue; nil; end).to_json) }'

export const QUERY_PARSERS: readonly Parser[] = [
  { name: 'Rack', seek: ruby, file: null, source: RACK },
  { name: 'Rack 3', seek: rack3, file: null, source: RACK },
  {
    name: 'qs',
    seek: qs,
    file: null,
    source: `const qs = require(${JSON.stringify('QS')}); require('readline').createInterface({ input: process.stdin }).on('line', (l) => console.log(JSON.stringify([{}, { allowDots: true }].map((o) => qs.parse(l, o).org ?? null).find((v) => v !== 'mine') ?? qs.parse(l).org ?? null)))`,
  },
  {
    name: 'PHP',
    seek: php,
    file: 'query.php',
    source:
      '<?php while (($l = fgets(STDIN)) !== false) { parse_str(rtrim($l, "\\n"), $q); echo json_encode($q["org"] ?? null, JSON_INVALID_UTF8_SUBSTITUTE), "\\n"; }',
  },
  {
    name: 'Django',
    seek: python,
    file: 'query.py',
    source: `import sys, json
from django.conf import settings
settings.configure()
from django.http import QueryDict
for line in sys.stdin: print(json.dumps(QueryDict(line.rstrip('\\n')).get('org')))
`,
  },
  {
    name: 'Go net/url',
    seek: go,
    file: 'query.go',
    source: GO(
      'q, _ := url.ParseQuery(lines.Text()); if v, ok := q["org"]; ok { show(v[len(v)-1]) } else { show(nil) }',
      '"net/url"',
    ),
  },
]
export const JSON_PARSERS: readonly Parser[] = [
  {
    name: 'Go encoding/json',
    seek: go,
    file: 'body.go',
    source: GO('var v struct { Org *string `json:"org"` }; json.Unmarshal(lines.Bytes(), &v); show(v.Org)', ''),
  },
  {
    name: 'PHP json_decode',
    seek: php,
    file: 'body.php',
    source:
      '<?php while (($l = fgets(STDIN)) !== false) { $v = json_decode($l); echo json_encode($v->org ?? null), "\\n"; }',
  },
  {
    name: "Python's json",
    seek: python,
    file: 'body.py',
    source: `import sys, json
for line in sys.stdin: print(json.dumps(json.loads(line).get('org')))
`,
  },
]

/** The values that the parser reads of each line, or why it cannot be asked. */
export function askParser({ seek, source, file, name }: Parser, lines: readonly string[]): readonly unknown[] | string {
  const runtime = seek()
  if (typeof runtime === 'string') return runtime
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-parser-'))
  try {
    const text = source.replace('"QS"', JSON.stringify(qsPath()))
    if (file !== null) writeFileSync(join(folder, file), text)
    const code = file === null ? (runtime.command === 'ruby' ? ['-e', text] : [text]) : [join(folder, file)]
    const { stdout, stderr } = spawnSync(runtime.command, [...runtime.args, ...code], {
      input: `${lines.join('\n')}\n`,
      encoding: 'utf8',
      timeout: 240_000,
      maxBuffer: 64 * 1024 * 1024,
    })
    const read = stdout.trim().split('\n')
    if (read.length !== lines.length)
      throw new Error(`${name} answered ${read.length} of ${lines.length}: ${stderr.slice(0, 500)}`)
    return read.map((line): unknown => JSON.parse(line))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
