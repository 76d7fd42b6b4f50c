import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

const DEPLOY = join(import.meta.dirname, '../../hack/deploy');

export interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface RuleGroup {
  readonly name: string;
  readonly rules: readonly AlertRule[];
}

/** Returns the rule groups of the PrometheusRule. */
export function ruleGroups(): readonly RuleGroup[] {
  const text = readFileSync(join(DEPLOY, 'alerts/prometheus-rule.yaml'), 'utf8');
  const rule = parse(text) as { readonly spec: { readonly groups: readonly RuleGroup[] } };
  return rule.spec.groups;
}

export interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: Readonly<Record<'x' | 'y' | 'w' | 'h', number>>;
  readonly datasource?: unknown;
  readonly targets?: readonly {
    readonly refId: string;
    readonly expr: string;
    readonly legendFormat: string;
    readonly datasource: unknown;
  }[];
}

export interface Dashboard {
  readonly title: string;
  readonly uid: string;
  readonly schemaVersion: number;
  readonly templating: {
    readonly list: readonly {
      readonly name: string;
      readonly type: string;
      readonly query: string | { readonly query: string };
    }[];
  };
  readonly panels: readonly Panel[];
}

export function dashboardText(): string {
  return readFileSync(join(DEPLOY, 'dashboard/crd-controller.json'), 'utf8');
}

export function dashboard(): Dashboard {
  return JSON.parse(dashboardText()) as Dashboard;
}

/** Returns all expressions of our dashboard by panel and letter. */
export function dashboardExpressions(): [where: string, expression: string][] {
  return expressionsOf(dashboard());
}

/** Returns all expressions of a dashboard by panel and letter. */
export function expressionsOf({ panels }: Dashboard): [where: string, expression: string][] {
  return panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ refId, expr }): [string, string] => [`${title} ${refId}`, expr]),
  );
}
