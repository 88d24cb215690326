// Writes what Kubernetes' own code makes of random pods and quantities, for ../kubernetes_numbers.rs:
//
//	go run . pods >pods.jsonl
//	go run . quantities >quantities.jsonl
//
// Run it again when the Kubernetes version in go.mod changes. The seed is fixed.
package main

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand"
	"os"

	"gopkg.in/inf.v0"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"
)

var random = rand.New(rand.NewSource(1))

func pick[T any](values ...T) T { return values[random.Intn(len(values))] }

func chance(percent int) bool { return random.Intn(100) < percent }

func list() v1.ResourceList {
	list := v1.ResourceList{}
	if chance(80) {
		list[v1.ResourceCPU] = resource.MustParse(pick("1", "250m", "0.5", "4", "1500m", "16"))
	}
	if chance(60) {
		list[v1.ResourceMemory] = resource.MustParse(pick("1Gi", "500M", "1.5Gi", "64Mi", "100m", "2e9"))
	}
	if chance(20) {
		list[v1.ResourceEphemeralStorage] = resource.MustParse(pick("1Gi", "10G"))
	}
	return list
}

func container(name string) v1.Container {
	container := v1.Container{Name: name}
	container.Resources.Requests = list()
	if chance(40) {
		// Kubernetes stores requests for what has a limit; so do these pods.
		cards := resource.MustParse(pick("1", "2", "8"))
		container.Resources.Requests["nvidia.com/gpu"] = cards
		container.Resources.Limits = v1.ResourceList{"nvidia.com/gpu": cards}
	}
	return container
}

func status(name string) v1.ContainerStatus {
	status := v1.ContainerStatus{Name: name}
	if chance(70) {
		status.AllocatedResources = list()
	}
	if chance(70) {
		status.Resources = &v1.ResourceRequirements{Requests: list()}
	}
	return status
}

func pod() *v1.Pod {
	pod := &v1.Pod{}
	withStatus := chance(50)
	for i := range 1 + random.Intn(3) {
		c := container(fmt.Sprintf("c%d", i))
		pod.Spec.Containers = append(pod.Spec.Containers, c)
		if withStatus && chance(80) {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status(c.Name))
		}
	}
	always := v1.ContainerRestartPolicyAlways
	for i := range random.Intn(4) {
		c := container(fmt.Sprintf("i%d", i))
		if chance(50) {
			c.RestartPolicy = &always
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
		if withStatus && chance(80) {
			pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, status(c.Name))
		}
	}
	if chance(20) {
		pod.Spec.Overhead = v1.ResourceList{
			v1.ResourceCPU:    resource.MustParse("250m"),
			v1.ResourceMemory: resource.MustParse("120Mi"),
		}
	}
	if chance(30) {
		// At least what the containers ask for, as the API server demands.
		pod.Spec.Resources = &v1.ResourceRequirements{Requests: v1.ResourceList{
			v1.ResourceCPU:    resource.MustParse("200"),
			v1.ResourceMemory: resource.MustParse("100Gi"),
		}}
		if withStatus && chance(50) {
			pod.Status.AllocatedResources = v1.ResourceList{v1.ResourceCPU: resource.MustParse(pick("100", "300"))}
			pod.Status.Resources = &v1.ResourceRequirements{Requests: v1.ResourceList{
				v1.ResourceMemory: resource.MustParse(pick("50Gi", "150Gi")),
			}}
		}
	}
	if withStatus && chance(40) {
		pod.Status.Conditions = []v1.PodCondition{{
			Type:   v1.PodResizePending,
			Status: v1.ConditionTrue,
			Reason: pick(v1.PodReasonInfeasible, v1.PodReasonDeferred),
		}}
	}
	return pod
}

// pods writes each pod with the numbers that kube-scheduler counts for it.
func pods(out *json.Encoder) error {
	for range 200 {
		// Through JSON, as a dump has it: empty lists are absent there.
		text, err := json.Marshal(pod())
		if err != nil {
			return err
		}
		pod := &v1.Pod{}
		if err := json.Unmarshal(text, pod); err != nil {
			return err
		}
		requests := helpers.PodRequests(pod, helpers.PodResourcesOptions{
			UseStatusResources: true,
			InPlacePodLevelResourcesVerticalScalingEnabled: true,
		})
		numbers := map[string]int64{}
		for name, quantity := range requests {
			number := quantity.Value()
			if name == v1.ResourceCPU {
				number = quantity.MilliValue()
			}
			if number > 0 {
				numbers[string(name)] = number
			}
		}
		if err := out.Encode(map[string]any{"pod": pod, "requests": numbers}); err != nil {
			return err
		}
	}
	return nil
}

// quantities writes each text with its value in thousandths, rounded up, or null.
func quantities(out *json.Encoder) error {
	const letters = "0123456789000111.eE+-numkMGTPKi_ "
	suffixes := []string{"", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
		"e3", "E3", "e-3", "e+2", "e0", "e", "i", "K", "mi", "e1.5", "g"}
	var texts []string
	for range 300 {
		text := make([]byte, 1+random.Intn(6))
		for i := range text {
			text[i] = letters[random.Intn(len(letters))]
		}
		texts = append(texts, string(text))
	}
	for range 700 {
		text := pick("", "", "", "+", "-") + big.NewInt(random.Int63n(pick[int64](10, 10000, 1<<40))).String()
		if chance(50) {
			text += "." + pick("", "5", "25", "001", "0000000001", "999999999999")
		}
		texts = append(texts, text+pick(suffixes...))
	}
	for _, text := range texts {
		var milli any
		if quantity, err := resource.ParseQuantity(text); err == nil {
			rounded := new(inf.Dec).Round(quantity.AsDec(), 3, inf.RoundUp)
			milli = rounded.UnscaledBig().String()
		}
		if err := out.Encode(map[string]any{"text": text, "milli": milli}); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	out := json.NewEncoder(os.Stdout)
	write := map[string]func(*json.Encoder) error{"pods": pods, "quantities": quantities}
	if len(os.Args) != 2 || write[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: go run . pods|quantities")
		os.Exit(2)
	}
	if err := write[os.Args[1]](out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
