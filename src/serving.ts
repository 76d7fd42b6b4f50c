/**
 * HTTP endpoints of a program: probes, metrics, certificates, delegated authentication and authorization.
 *
 * @experimental
 * @module
 */
export { DelegatedAccess } from './serving/delegated-access.ts';
export type {
  DelegatedAccessDeps,
  RequestAttributes,
  RequestAuthorizer,
  AccessDecision,
} from './serving/delegated-access.ts';
export type { HealthCheck } from './serving/health-checks.ts';
export { HttpServer } from './serving/http-server.ts';
export type { HttpServerOptions, ServerTls } from './serving/http-server.ts';
export type {
  RouteCall as Call,
  CallRequest,
  Calls,
  HttpServerRoutes,
  Page,
  Pages,
  RouteSetting as Setting,
  Settings,
} from './serving/routes.ts';
export { CertificateFiles, selfSignedCertificate } from './serving/serving-certificate.ts';
export type {
  CertificateFilesDeps,
  CertificateFilesOptions,
  CertificateSource,
} from './serving/serving-certificate.ts';
