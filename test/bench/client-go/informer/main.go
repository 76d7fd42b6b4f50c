// Command informer is a client program of the benchmarks: a shared index informer of client-go on a typed resource, with
// two indexes and one handler, as generated code sets it up.
package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"crd-controller/test/bench/client-go/foo"
)

type options struct {
	Server  string `json:"server"`
	CAFile  string `json:"caFile"`
	Kind    string `json:"kind"`
	Events  int    `json:"events"`
	Latency bool   `json:"latency"`
}

type reading struct {
	cpuMs     float64
	wall      time.Time
	peakRssKb int64
}

func read() reading {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	cpu := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	return reading{float64(cpu.Microseconds()) / 1000, time.Now(), usage.Maxrss}
}

func heapBytes() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func report(line map[string]any, since, now reading) {
	line["cpuMs"] = now.cpuMs - since.cpuMs
	line["wallMs"] = float64(now.wall.Sub(since.wall).Microseconds()) / 1000
	line["peakRssKb"] = now.peakRssKb
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}

func main() {
	var opts options
	if err := json.Unmarshal([]byte(os.Args[1]), &opts); err != nil {
		panic(err)
	}
	startHeap := heapBytes()
	start := read()
	informer, err := newInformer(&opts)
	if err != nil {
		panic(err)
	}
	if err := informer.AddIndexers(cache.Indexers{
		"app": func(object any) ([]string, error) {
			return []string{object.(metav1.Object).GetLabels()["app"]}, nil
		},
	}); err != nil {
		panic(err)
	}
	stormed := make(chan reading)
	left := opts.Events
	var latencies []float64
	queue := workqueue.NewTypedRateLimitingQueue(
		workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName](),
	)
	var mutex sync.Mutex
	handle := func(object metav1.Object) {
		now := float64(time.Now().UnixMicro())
		mutex.Lock()
		defer mutex.Unlock()
		if opts.Latency {
			sent, err := strconv.ParseFloat(object.GetAnnotations()["sent"], 64)
			if err != nil {
				panic(err)
			}
			latencies = append(latencies, (now-sent)/1000)
		}
		if left--; left == 0 {
			stormed <- read()
		}
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(last, next any) {
			// A relist reports all objects.
			if last.(metav1.Object).GetResourceVersion() == next.(metav1.Object).GetResourceVersion() {
				return
			}
			if !opts.Latency {
				handle(next.(metav1.Object))
			} else if name, err := cache.ObjectToName(next); err == nil {
				queue.Add(name)
			}
		},
	})
	if err != nil {
		panic(err)
	}
	for range 2 {
		go func() {
			for {
				name, shutdown := queue.Get()
				if shutdown {
					return
				}
				if object, exists, err := informer.GetStore().GetByKey(name.String()); err == nil && exists {
					handle(object.(metav1.Object))
				}
				queue.Forget(name)
				queue.Done(name)
			}
		}()
	}
	go informer.Run(make(chan struct{}))
	for !registration.HasSynced() {
		time.Sleep(time.Millisecond)
	}
	synced := read()
	heap := heapBytes() - startHeap
	report(map[string]any{
		"at":        "synced",
		"heapBytes": heap,
		"rssKb":     rssKb(),
		"checksum":  checksum(informer),
	}, start, synced)
	if opts.Events == 0 {
		return
	}
	begin := read()
	end := <-stormed
	line := map[string]any{"at": "stormed", "checksum": checksum(informer)}
	if opts.Latency {
		line["latencies"] = latencies
	}
	report(line, begin, end)
}

func newInformer(opts *options) (cache.SharedIndexInformer, error) {
	config := &rest.Config{Host: opts.Server, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAFile: opts.CAFile}}
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	if opts.Kind == "pods" {
		config.ContentType = apiruntime.ContentTypeJSON
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		source := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, fields.Everything())
		return cache.NewSharedIndexInformer(source, &corev1.Pod{}, 0, indexers), nil
	}
	client, err := foo.NewClient(config)
	if err != nil {
		return nil, err
	}
	source := cache.NewListWatchFromClient(client, "foos", metav1.NamespaceAll, fields.Everything())
	return cache.NewSharedIndexInformer(source, &foo.Foo{}, 0, indexers), nil
}

// checksum returns names and versions as one number that does not depend on the order.
func checksum(informer cache.SharedIndexInformer) uint32 {
	var sum uint32
	for _, object := range informer.GetStore().List() {
		meta := object.(metav1.Object)
		hash := fnv.New32a()
		fmt.Fprintf(hash, "%s/%s/%s", meta.GetNamespace(), meta.GetName(), meta.GetResourceVersion())
		sum += hash.Sum32()
	}
	return sum
}

func rssKb() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		panic(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		panic(err)
	}
	return pages * int64(os.Getpagesize()) / 1024
}
