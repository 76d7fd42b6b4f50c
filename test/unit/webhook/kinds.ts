import type { KubernetesObject } from '../../../src/api/object.ts';
import type { Resource } from '../../../src/api/resource.ts';

/** A kind of tests with three versions: `spec.size` is `WIDTHxHEIGHT` in v1, and two numbers in v2 and v3. */
const BOX = { group: 'test.example.com', plural: 'boxes', kind: 'Box', namespaced: true } as const;

export interface BoxV1 extends KubernetesObject {
  spec: { size: string; tags?: string[] };
}

export interface BoxV2 extends KubernetesObject {
  spec: { width: number; height: number; tags?: string[] };
}

export const BOXES_V1: Resource<BoxV1> = { ...BOX, version: 'v1' };
export const BOXES_V2: Resource<BoxV2> = { ...BOX, version: 'v2' };
export const BOXES_V3: Resource<BoxV2> = { ...BOX, version: 'v3' };
