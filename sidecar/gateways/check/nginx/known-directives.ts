/** Names of directives of nginx that this command understands: what it checks, and what neither routes, filters nor forwards. */
import type { Directive } from '../../read/nginx.ts'
import { at, type Finding } from '../finding.ts'

const UPSTREAM = `(?:proxy|grpc|fastcgi|scgi|uwsgi|memcached)_(?:${[
  'allow_upstream|bind|buffer(?:s|ing|_size)|busy_buffers_size|cache\\w*|catch_stderr|connect_timeout|cookie_(?:domain|flags|path)|force_ranges',
  'gzip_flag|headers_hash_(?:bucket|max)_size|hide_header|http_version|ignore_(?:client_abort|headers)|index|intercept_errors|keep_conn|key',
  'limit_rate|max_temp_file_size|method|modifier[12]|next_upstream\\w*|no_cache|param|pass|pass_header|pass_request_(?:body|headers)|pass_trailers',
  'read_timeout|redirect|request_(?:buffering|dynamic)|send_(?:lowat|timeout)|set_(?:body|header)|socket_keepalive|split_path_info|ssl_\\w+|store\\w*',
  'string|temp_(?:path|file_write_size)',
].join('|')})`

const NAMES = `
  absolute_redirect access_log add_(header|trailer)\\w* add_(before|after)_body addition_types aio(_write)? alias allow
  (ancient|modern)_browser\\w* auth_(basic|basic_user_file|delay|request|request_set) auth_jwt\\w* autoindex\\w* break brotli\\w* charset\\w*
  chunked_transfer_encoding client_\\w+ connection_pool_size create_full_put_path dav_\\w+ default_type deny directio\\w* disable_symlinks
  early_hints empty_gif error_(log|page) etag expires flv geo\\w* gunzip\\w* gzip\\w* hash health_check http2\\w* http3\\w* if if_modified_since
  ignore_invalid_headers image_filter\\w* index internal ip_hash
  js_(body_filter|context_reuse\\w*|engine|fetch_\\w+|import|load_http_native_module|path|periodic|preload_object|shared_dict_zone|var)
  keepalive\\w* keyval\\w* large_client_header_buffers least_conn least_time limit_(except|rate\\w*|conn\\w*|req\\w*) lingering_\\w+ listen
  location log_\\w+ lua_\\w+ map\\w* match max_(errors|headers|ranges) merge_slashes min_delete_depth mirror\\w* mp4\\w* msie_\\w+
  more_(set|clear)_headers modsecurity\\w* ntlm open_\\w+ otel_\\w+ output_buffers override_charset port_in_redirect postpone_\\w+ queue quic_\\w+
  random random_index read_ahead real_ip_\\w+ recursive_error_pages referer_hash\\w+ request_pool_size reset_timedout_connection
  resolver\\w* return rewrite rewrite_log root satisfy secure_link\\w* send_\\w+ sendfile\\w* server server_\\w+ set set_real_ip_from slice
  source_charset split_clients ssi\\w* ssl\\w* state status_zone sticky\\w* stub_status sub_filter\\w* subrequest_output_buffer_size tcp_\\w+
  try_files types\\w* underscores_in_headers uninitialized_variable_warn upstream userid\\w* valid_referers variables_hash\\w+
  vhost_traffic_status\\w* xml_entities xslt_\\w+ zone zstd\\w*`

const KNOWN = new RegExp(`^(?:${UPSTREAM}|${NAMES.trim().split(/\s+/).join('|')})$`)
/** Their blocks hold values, and no directives. */
const VALUES = /^(?:map|geo|geoip2|split_clients|types|charset_map|match|\w+_by_lua_block)$/
/** Blocks beside `http`. */
const NO_HTTP = ['events', 'stream', 'mail']

export const isCode = (name: string): boolean => /_by_lua|^js_(content|access|set|header_filter)|^perl/.test(name)

/** `directives`: of a file. What stands around `http` is about processes. */
export function checkKnown(directives: readonly Directive[]): readonly Finding[] {
  const http = directives.filter(({ name }) => name === 'http')
  const here = http.length > 0 ? http.flatMap(({ block }) => block ?? []) : directives
  return here.filter(({ name }) => !NO_HTTP.includes(name)).flatMap(unknown)
}

function unknown(directive: Directive): readonly Finding[] {
  const { name, block } = directive
  const inner = VALUES.test(name) ? [] : (block ?? []).flatMap(unknown)
  if (KNOWN.test(name) || isCode(name)) return inner
  return [
    at(directive)('unseen', `${name} is not known here: it may route, answer or change requests`, 'judge it by hand'),
    ...inner,
  ]
}
