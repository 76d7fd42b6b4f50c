// Command informer is a client program of the benchmarks: a shared index informer of client-go on a typed resource, with
// two indexes and one handler, as generated code sets it up.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"crd-controller/test/bench/client-go/foo"
)

type options struct {
	Server  string `json:"server"`
	Objects int    `json:"objects"`
	Events  int    `json:"events"`
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
	client, err := foo.NewClient(&rest.Config{Host: opts.Server, QPS: -1})
	if err != nil {
		panic(err)
	}
	informer := cache.NewSharedIndexInformer(
		cache.NewListWatchFromClient(client, "foos", metav1.NamespaceAll, fields.Everything()),
		&foo.Foo{},
		0,
		cache.Indexers{
			cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
			"app": func(object any) ([]string, error) {
				return []string{object.(*foo.Foo).Labels["app"]}, nil
			},
		},
	)
	stormed := make(chan reading)
	left := opts.Events
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, _ any) {
			if left--; left == 0 {
				stormed <- read()
			}
		},
	})
	if err != nil {
		panic(err)
	}
	go informer.Run(make(chan struct{}))
	for !registration.HasSynced() {
		time.Sleep(time.Millisecond)
	}
	synced := read()
	heap := heapBytes() - startHeap
	report(map[string]any{"at": "synced", "startCpuMs": start.cpuMs, "heapBytes": heap}, start, synced)
	if opts.Events == 0 {
		runtime.KeepAlive(informer)
		return
	}
	begin := read()
	report(map[string]any{"at": "stormed"}, begin, <-stormed)
}
