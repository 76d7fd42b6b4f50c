/**
 * HTTP endpoints of a program: probes, metrics, certificates, delegated authentication and authorization.
 *
 * @module
 */
export { DelegatedAccess } from './manager/serving/delegated-access.ts';
export type {
  DelegatedAccessDeps,
  GuardedRequest,
  RequestGuard,
  Verdict,
} from './manager/serving/delegated-access.ts';
export type { HealthCheck } from './manager/serving/health-probe.ts';
export { HttpServer } from './manager/serving/http-server.ts';
export type {
  HttpServerOptions,
  HttpServerRoutes,
  ServerTls,
} from './manager/serving/http-server.ts';
export type { Page, Pages } from './manager/serving/page.ts';
export { CertificateFiles, selfSigned } from './manager/serving/serving-certificate.ts';
export type {
  CertificateFilesDeps,
  CertificateFilesOptions,
  CertificateSource,
} from './manager/serving/serving-certificate.ts';
export type { Setting, Settings } from './manager/serving/settings.ts';
