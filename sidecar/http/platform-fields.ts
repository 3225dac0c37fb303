/** Header fields that identity proxies, gateways, meshes and platforms set, and that the applications behind them trust. */

/** Names, or prefixes that end in `*`; part of `COMMONLY_TRUSTED_FIELDS`. */
export const PLATFORM_FIELDS = [
  // Fields of identity proxies.
  'x-webauth-*', // Grafana, Gitea
  'webauth-*', // Stanford WebAuth
  'x-pomerium-*',
  'x-vouch-*',
  'x-authentik-*',
  'tailscale-*',
  'teleport-*',
  'gap-*', // oauth2-proxy
  'oidc-*', // mod_auth_openidc
  'mellon-*', // mod_auth_mellon
  'shib-*', // Shibboleth
  'eppn',
  'affiliation', // Shibboleth: names of its default attribute map
  'unscoped-affiliation',
  'primary-affiliation',
  'entitlement',
  'assurance',
  'subject-id',
  'pairwise-id',
  'eduperson*',
  'persistent-id',
  'targeted-id',
  'ajp-*', // Shibboleth over AJP
  'cas-*', // mod_auth_cas
  'sm-*', // SiteMinder SM_USER
  'iv-*', // IBM WebSEAL
  'oam-*', // Oracle Access Manager
  'osso-*',
  'idcs-*', // Oracle Identity Cloud Service
  'ct-remote-*', // RSA ClearTrust
  'pf-*', // PingFederate
  'adfs-*',
  'x-openam-*',
  'x-authelia-*',
  'x-kratos-*', // Ory Kratos: X-Kratos-Authenticated-Identity-Id
  'x-oidc-*',
  'ngrok-*', // ngrok-auth-user-email
  'zrok-*', // zrok-auth-email
  'x-exedev-*', // exe.dev: X-ExeDev-Email
  'x-openidm-*', // OpenIDM RunAs
  'ynh-*', // YunoHost
  'x-jwt-*', // WSO2 X-JWT-Assertion
  'x-approuter-*', // SAP application router
  'x-ext-authz-*', // Envoy
  'impersonate-*', // Kubernetes
  'es-security-*', // Elasticsearch run-as
  'securitytenant', // OpenSearch
  'x-trino-user', // trusted without a password
  'x-trino-original-user',
  'x-presto-user',
  'x-scope-orgid', // Loki, Mimir, Tempo
  'thanos-tenant',
  'accountid', // VictoriaLogs
  'projectid', // VictoriaLogs
  'kubeflow-*', // Kubeflow kubeflow-userid
  'x-jfrog-override-*', // Artifactory
  'x-artifactory-override-*',
  'x-odoo-*', // Odoo
  'x-spinnaker-*', // Spinnaker: user and accounts between its services
  'argocd-*', // Argo CD to its extensions
  'x-wcpay-*', // WooCommerce Payments (CVE-2023-28121)
  'rstudio-connect-*', // Posit Connect
  'posit-connect-*',
  'shiny-server-*',
  'x-rstudio-*', // Posit Workbench: X-RStudio-Username
  'x-rsconnect-*',
  'x-streamlit-*', // Streamlit Community Cloud: X-Streamlit-User
  'plotly-user-*', // Dash Enterprise: Plotly-User-Data
  'x-openwebui-*', // Open WebUI to its pipelines: X-OpenWebUI-User-Email
  'x-qlik-user*', // Qlik Sense
  'gitlab-workhorse*',
  'x-sp-user*', // ShinyProxy: X-SP-UserId, X-SP-UserGroups
  'x-alfresco-*', // Alfresco: X-Alfresco-Remote-User
  'x-akhq-*', // AKHQ
  'x-tobira-*', // Tobira
  'x-grafana-user', // Grafana to its data sources
  'x-graylog-server-url',
  'x-zitadel-public-host',
  'x-zitadel-instance-host',
  'x-zitadel-forwarded',
  // Fields of mobile networks.
  'msisdn',
  'x-msisdn',
  'x-up-calling-line-id',
  'x-3gpp-asserted-identity', // 3GPP TS 24.109
  'x-xcap-asserted-identity',
  // Fields of gateways and meshes.
  'x-consumer-*', // Kong, APISIX
  'x-credential-*', // Kong, APISIX
  'x-anonymous-consumer', // Kong
  'x-userinfo', // Kong, APISIX
  'x-id-token',
  'x-access-token',
  'x-refresh-token',
  'x-kong-*',
  'x-apisix-*',
  'x-tyk-*',
  'x-apigee-*',
  'x-3scale-*',
  'x-rh-*', // Red Hat X-RH-Identity
  'x-agw-*', // Layer7, MuleSoft
  'x-gravitee-*',
  'x-krakend*',
  'x-mashery-*',
  'x-rapidapi-*',
  'x-mashape-*',
  'x-envoy-*',
  'x-istio-*',
  'l5d-*', // Linkerd
  'x-kuma-*',
  'dapr-*',
  'knative-*',
  'k-network-*',
  'k-proxy-*',
  // Fields of hosting platforms.
  'x-amzn-oidc-*', // AWS load balancers
  'x-amzn-mtls-*',
  'x-amzn-ava-*', // AWS Verified Access
  'x-amzn-tls-*',
  'x-amzn-lambda-*', // AWS Lambda Web Adapter
  'x-amzn-request-context',
  'x-amzn-apigateway-*',
  'x-amzn-lattice-*',
  'x-amzn-source-*',
  'x-apigateway-*', // Google and AWS API gateways
  'x-endpoint-api-*', // Google Cloud Endpoints
  'x-serverless-authorization', // Google Cloud Run
  'x-goog-authenticated-user-*',
  'x-goog-iap-*',
  'x-google-*',
  'x-appengine-*',
  'x-cloudtasks-*',
  'x-cloudscheduler*',
  'x-ms-client-principal*', // Azure App Service
  'x-ms-token-*',
  'x-ms-forwarded-*', // AD FS
  'x-ms-proxy',
  'x-arr-*', // Azure and IIS Application Request Routing
  'x-azure-*', // Azure Front Door
  'x-fd-*',
  'x-waws-*',
  'x-appservice-*',
  'disguised-host',
  'x-site-deployment-id',
  'was-default-hostname',
  'x-replit-*', // Replit
  'x-sandstorm-*', // Sandstorm
  'sf-context-*', // Snowflake
  'domino-*', // Domino Data Lab
  'x-fc-*', // Alibaba Function Compute: X-Fc-Account-Id
  'cf-*', // Cloudflare: Cf-Access-*, CF-Connecting-IP, CF-IPCountry
  'x-cf-*', // Cloud Foundry
  'cloudfront-*',
  'fastly-*',
  'fly-*',
  'akamai-*',
  'x-akamai-*',
  'incap-*',
  'x-incap-*',
  'x-sucuri-*',
  'ali-cdn-*',
  'eo-*', // Tencent EdgeOne
  'do-connecting-ip', // DigitalOcean App Platform
]
