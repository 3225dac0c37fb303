/**
 * Header fields that are not forwarded from clients: connection-specific fields, fields that the sidecar sets, and fields
 * that servers, frameworks, gateways and platforms trust as set by a proxy in front of them.
 */
import { PAGE_FRAMEWORK_FIELDS } from '../frameworks/page-frameworks.ts'
import { PLATFORM_FIELDS } from './platform-fields.ts'

/** Connection-specific fields (RFC 9110 section 7.6.1), and fields that the next connection gets from the sidecar. */
export const CONNECTION_FIELDS = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]
export const CREDENTIAL_FIELDS = ['authorization', 'dpop']
/** Fields that the sidecar sets. A client's field with such a name is always removed, even if `pass_headers` names it. */
export const OWN_FIELDS = [
  'host',
  'content-length',
  'expect',
  'via',
  'x-request-id',
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-auth-subject',
  'x-auth-subject-type',
  'x-auth-client',
  'x-auth-actor',
  'x-auth-issuer',
  'x-auth-organization',
  'x-auth-scope',
]

/**
 * Names, or prefixes that end in `*`, with the products that trust them. `x-identity-*` also covers the bare `x-identity`. With these
 * fields a client could give an upstream a false identity, address or target. Not listed, because clients need them: cookies,
 * `accept*`, `if-*`, `sec-*`, tracing (`traceparent`, `b3`, `x-b3-*`, `x-amzn-trace-id`), API keys, which upstreams verify (`x-api-key`).
 */
export const COMMONLY_TRUSTED_FIELDS = [
  // Our own, and generic names of identity fields.
  'portcullis-*',
  'x-portcullis-*',
  'x-pdp-*',
  'x-internal-*',
  'x-trusted-*',
  'x-auth',
  'x-auth-*', // oauth2-proxy (X-Auth-Request-*), CouchDB, Louketo, and our own
  'x-authenticated-*', // Kong OAuth 2.0
  'x-authn*',
  'x-authz*',
  'x-authorized-*',
  'authenticated-*', // Kong OpenID Connect
  'x-identity-*', // OpenStack keystonemiddleware
  'x-roles', // OpenStack keystonemiddleware
  'x-is-admin-project',
  'x-service-catalog',
  'x-backend-*', // OpenStack Swift
  'x-user', // Ory Oathkeeper header mutator, KrakenD
  'x-user-email',
  'x-user-groups',
  'x-user-id',
  'x-user-info',
  'x-user-name',
  'x-user-role',
  'x-user-roles',
  'x-user-scopes',
  'x-user-permission*',
  'x-permissions',
  'x-user-claims',
  'x-user-sub',
  'x-user-login',
  'x-user-dn',
  'x-user-uid',
  'x-user-subject',
  'x-user-principal*',
  'x-user-attributes',
  'x-user-data',
  'x-user-admin',
  'x-user-is-*',
  'x-user-org*',
  'x-user-tenant*',
  'x-user-account*',
  'x-user-scope',
  'x-principal*',
  'x-user-domain-*', // OpenStack keystonemiddleware
  'x-userid',
  'x-username',
  'x-email', // single sign-on by header in many small applications
  'x-groups',
  'x-token-user-*', // Caddy Security
  'x-token-subject',
  'x-sso-*', // Sonatype Nexus
  'x-saml-*',
  'auth-user', // YunoHost, LemonLDAP::NG
  'auth-mail',
  'auth-groups',
  'lm-remote-*', // LemonLDAP::NG
  // Fields about forwarding and client addresses.
  'forwarded*', // RFC 7239, and Forwarded-For and Forwarded-Proto
  'x-forward*', // X-Forwarded-*, X-Forward-For
  'x-original-*', // IIS URL Rewrite, ASP.NET Core, Symfony
  'x-originating-*', // webmail
  'x-override-url',
  'x-rewrite-*', // IIS ISAPI_Rewrite, Symfony
  'x-real-*', // nginx realip, Tornado
  'x-host*',
  'x-http-*', // method overrides (Rack, OData, JAX-RS), X-HTTP-Host-Override
  'x-http2-*', // Netty: X-Http2-Path, X-Http2-Scheme
  'x-replaced-path', // Traefik
  'x-method-override', // Express method-override, Plack
  'x-tunneled-method', // Catalyst
  'x-client-ip', // mod_remoteip, Azure
  'x-cluster-client-ip', // Rackspace, Zeus
  'x-true-*',
  'x-originally-*',
  'real-ip',
  'cluster-client-ip',
  'cdn-src-ip',
  'x-custom-ip-authorization',
  'client-ip', // Rails, Azure Application Gateway
  'true-client-ip', // Akamai, Cloudflare
  'remote-*', // RFC 3875: REMOTE_USER, REMOTE_ADDR; Authelia Remote-User, Remote-Groups; Pekko Remote-Address
  'x-remote-*', // Kubernetes X-Remote-User
  'proxy',
  'proxy-*', // httpoxy; Jetty Proxy-auth-cert; 403 bypass lists
  'x-proxied*', // Jetty X-Proxied-Https, NiFi X-ProxiedEntitiesChain
  'x-proxy*', // OpenSearch proxy authentication, Apache Knox X-ProxyContextPath
  'http-*', // HTTP_CLIENT_IP and their like, sent with dashes
  // RFC 3875 section 4.1: meta-variables of CGI, which gunicorn, FastCGI and mod_php read as fields, too.
  'auth-type',
  'gateway-interface',
  'path-info',
  'path-translated',
  'query-string',
  'request-method',
  'request-uri',
  'script-filename',
  'script-name',
  'server-name',
  'server-port',
  'server-protocol',
  'document-root',
  'redirect-*', // Apache: variables of an internal redirect
  // Mount point of an application, and the scheme of the request.
  'x-script-name', // mod_wsgi, Flask and Django recipes
  'x-traversal-path', // Plack
  'x-request-base', // Mojolicious, Catalyst
  'x-request-uri',
  'x-context-path',
  'x-base-url',
  'x-ingress-path', // Home Assistant
  'x-hass-*', // Home Assistant
  'x-ha-ingress', // ESPHome: no sign-in
  'x-scheme', // ingress-nginx, Tornado, mod_wsgi
  'x-url-scheme', // Werkzeug, GitLab
  'x-https', // mod_wsgi
  'https', // PHP, CGI
  'front-end-https', // Microsoft
  'x-front-end-https',
  'base-url',
  'uri',
  'url',
  // Internal fields of servers and frameworks.
  'x-accel-*', // nginx; Rack::Sendfile reads X-Accel-Mapping
  'x-sendfile*', // Rack::Sendfile reads X-Sendfile-Type
  'x-php-ob-level', // Symfony sub-requests
  'surrogate-*', // Symfony, Edge Side Includes
  'x-vercel-*', // Vercel
  ...PAGE_FRAMEWORK_FIELDS,
  'grpc-metadata-*', // grpc-gateway: becomes metadata without this prefix
  'grpcgateway-*', // gRPC servers believe that grpc-gateway has set these
  'x-webobjects-*', // SOGo: X-WebObjects-Remote-User
  'x-tomcat-docroot', // mod_cfml
  'x-modcfml-*',
  'camel*', // Apache Camel: CamelHttpUri, CamelExecCommandExecutable
  'x-nf-*', // Netlify
  'raw-request-uri', // Pekko and Akka HTTP
  'tls-session-info',
  'timeout-access',
  'ms-aspnetcore-*', // IIS to ASP.NET Core
  'wl-proxy-*', // WebLogic
  'x-weblogic-*',
  // Fields about client certificates.
  'client-cert*', // RFC 9440
  'clientcert*',
  'ssl*', // ingress-nginx ssl-client-*, Tomcat SSLValve, F5 SSLClientCert*
  'x-ssl*', // HAProxy
  'tls-client-*',
  'x-tls-*',
  'x-mtls-*',
  'x-peer-cert*',
  'x-client-cert*', // Google load balancers
  'x-clientcert*',
  'x-client-dn',
  'x-client-s-dn',
  'x-client-i-dn',
  'x-client-serial*',
  'x-client-subject*',
  'x-client-verif*',
  'x-spiffe-*',
  ...PLATFORM_FIELDS,
]
