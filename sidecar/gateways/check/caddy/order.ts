/** The order in which Caddy runs the directives of a block (caddyconfig/httpcaddyfile/directives.go). */

/** Those that are not in it are not of Caddy itself. */
export const ORDER: readonly string[] =
  `tracing map vars fs root log_append skip_log log_skip log_name header copy_response_headers request_body
  redir method rewrite uri try_files basicauth basic_auth forward_auth request_header encode push intercept templates invoke handle handle_path
  route abort error copy_response respond metrics reverse_proxy php_fastcgi file_server acme_server`.split(/\s+/)
