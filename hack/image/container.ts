import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Configuration of an image. */
export interface ImageConfig {
  readonly User: string;
  readonly Env: readonly string[];
  readonly Entrypoint: readonly string[];
  readonly WorkingDir: string;
  readonly Labels: Readonly<Record<string, string>>;
}

export interface ContainerOptions {
  /** Arguments after the entrypoint; replace the command of the image. */
  readonly args: readonly string[];
  /**
   * Replaces the entrypoint of the image.
   * @default the image's
   */
  readonly entrypoint?: readonly string[];
  /** Added to the environment of the image; takes precedence. */
  readonly env?: readonly string[];
  /** Files of this machine, by their path in the container. */
  readonly files?: Readonly<Record<string, string>>;
  /** @default none */
  readonly memoryBytes?: number;
}

/** Result of a container. */
export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * An image whose containers run in an OCI runtime as under the restricted Pod Security level: as the image's
 * user, on a read-only root, without capabilities or privilege escalation, as process 1. They use the network
 * of the machine.
 */
export class Image {
  readonly config: ImageConfig;
  readonly bytes: number;
  readonly #container: string;
  readonly #rootfs: string;
  #count = 0;

  constructor(name: string) {
    const inspected: { OCIv1: { config: ImageConfig } } = JSON.parse(
      buildah('inspect', '--type', 'image', name),
    );
    this.config = inspected.OCIv1.config;
    this.#container = buildah('from', '--pull-never', name);
    this.#rootfs = buildah('mount', this.#container);
    this.bytes = Number(
      execFileSync('du', ['-sb', this.#rootfs], { encoding: 'utf8' }).split('\t')[0],
    );
  }

  /** Returns the path of an image's file on this machine. */
  path(path: string): string {
    return join(this.#rootfs, path);
  }

  read(path: string): string {
    return readFileSync(this.path(path), 'utf8');
  }

  start(options: ContainerOptions): Container {
    const id = `crd-controller-try-${process.pid}-${this.#count++}`;
    const bundle = mkdtempSync(join(tmpdir(), `${id}-`));
    const spec = runtimeSpec(this.#rootfs, this.config, options);
    writeFileSync(join(bundle, 'config.json'), JSON.stringify(spec));
    return new Container(id, bundle);
  }

  /** Starts a container and waits until it ends. */
  async run(options: ContainerOptions): Promise<Ended> {
    return this.start(options).ended;
  }

  remove(): void {
    buildah('rm', this.#container);
  }
}

export class Container {
  readonly id: string;
  readonly startedMs: number = performance.now();
  readonly ended: Promise<Ended>;
  #stdout = '';
  #stderr = '';
  #isOver = false;
  readonly #waiting = new Set<() => void>();

  constructor(id: string, bundle: string) {
    this.id = id;
    const child = spawn('runc', ['run', '--bundle', bundle, id], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const checkLines = () => {
      for (const look of this.#waiting) look();
    };
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout += text;
      checkLines();
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
      checkLines();
    });
    this.ended = (async () => {
      const [code] = (await once(child, 'close')) as [number | null];
      this.#isOver = true;
      checkLines();
      rmSync(bundle, { recursive: true, force: true });
      return { code: code ?? -1, stdout: this.#stdout, stderr: this.#stderr };
    })();
  }

  /** Its stderr so far. */
  get stderr(): string {
    return this.#stderr;
  }

  /** Returns the milliseconds from the start to the first log line that matches. */
  async logged(line: RegExp): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    const look = () => {
      if (line.test(this.#stderr)) resolve(performance.now() - this.startedMs);
      else if (this.#isOver)
        reject(new Error(`The container ended without ${line}:\n${this.#stderr}`));
    };
    this.#waiting.add(look);
    look();
    try {
      return await promise;
    } finally {
      this.#waiting.delete(look);
    }
  }

  /** Returns /proc/PID/status of its first process. */
  async status(): Promise<ReadonlyMap<string, string>> {
    const { stdout } = await run('runc', ['state', this.id]);
    const { pid }: { pid: number } = JSON.parse(stdout);
    const lines = readFileSync(`/proc/${pid}/status`, 'utf8').trim().split('\n');
    return new Map(
      lines.map((line): [string, string] => {
        const [name = '', ...values] = line.split(/:?\s+/);
        return [name, values.join(' ')];
      }),
    );
  }

  async kill(signal: 'TERM' | 'KILL' | 'USR1'): Promise<void> {
    await run('runc', ['kill', this.id, signal]);
  }
}

function buildah(...args: readonly string[]): string {
  return execFileSync('buildah', args, { encoding: 'utf8' }).trim();
}

function runtimeSpec(
  rootfs: string,
  { User, Env, Entrypoint, WorkingDir }: ImageConfig,
  { args, entrypoint = Entrypoint, env = [], files = {}, memoryBytes }: ContainerOptions,
): object {
  const [uid, gid = uid] = User.split(':').map(Number);
  const nothing: string[] = [];
  const readOnly = ['rbind', 'ro', 'nosuid', 'nodev', 'noexec'];
  const instead = new Set(env.map((each) => each.split('=')[0]));
  return {
    ociVersion: '1.0.2',
    process: {
      user: { uid, gid },
      args: [...entrypoint, ...args],
      env: [...Env.filter((each) => !instead.has(each.split('=')[0])), ...env],
      cwd: WorkingDir,
      capabilities: {
        bounding: nothing,
        effective: nothing,
        inheritable: nothing,
        permitted: nothing,
        ambient: nothing,
      },
      noNewPrivileges: true,
    },
    root: { path: rootfs, readonly: true },
    hostname: 'crd-controller',
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc' },
      {
        destination: '/dev',
        type: 'tmpfs',
        source: 'tmpfs',
        options: ['nosuid', 'strictatime', 'mode=755', 'size=64k'],
      },
      {
        destination: '/tmp',
        type: 'tmpfs',
        source: 'tmpfs',
        options: ['nosuid', 'nodev', 'noexec', 'mode=1777', 'size=64m'],
      },
      {
        destination: '/sys/fs/cgroup',
        type: 'cgroup',
        source: 'cgroup',
        options: ['nosuid', 'noexec', 'nodev', 'relatime', 'ro'],
      },
      ...Object.entries(files).map(([destination, source]) => ({
        destination,
        type: 'bind',
        source,
        options: readOnly,
      })),
    ],
    linux: {
      namespaces: ['pid', 'ipc', 'uts', 'mount', 'cgroup'].map((type) => ({ type })),
      resources:
        memoryBytes === undefined ? {} : { memory: { limit: memoryBytes, swap: memoryBytes } },
      maskedPaths: ['/proc/kcore', '/proc/keys', '/proc/timer_list'],
      readonlyPaths: ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'],
    },
  };
}
