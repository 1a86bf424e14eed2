package boot

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hostsFile is what kubelet writes for a pod: with a name in the domain of a headless service, where the pod has a subdomain.
func hostsFile(name, domain string) map[string][]byte {
	text := "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n10.244.1.7\t"
	if domain != "" {
		text += name + "." + domain + "\t"
	}
	return map[string][]byte{"/etc/hosts": []byte(text + name + "\n")}
}

// The environments of pods, as the controllers set them: Kubernetes' Job controller, JobSet, Kubeflow's trainer 2 (a
// JobSet with PET_ variables) and its training operator 1 (a PyTorchJob).
var (
	indexedJob = map[string]string{"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443", "JOB_COMPLETION_INDEX": "2", "HOSTNAME": "allreduce-2", "GOCCL_SIZE": "4"}
	jobSet     = map[string]string{"KUBERNETES_SERVICE_HOST": "10.96.0.1", "JOB_COMPLETION_INDEX": "1", "HOSTNAME": "bench-ranks-0-1", "GOCCL_SIZE": "2"}
	trainJob   = map[string]string{"KUBERNETES_SERVICE_HOST": "10.96.0.1", "JOB_COMPLETION_INDEX": "3", "HOSTNAME": "gpt-node-0-3",
		"PET_NNODES": "4", "PET_NPROC_PER_NODE": "1", "PET_NODE_RANK": "3", "PET_MASTER_ADDR": "gpt-node-0-0.gpt", "PET_MASTER_PORT": "29400"}
	pyTorchMaster = map[string]string{"KUBERNETES_SERVICE_HOST": "10.96.0.1", "HOSTNAME": "gpt-master-0", "MASTER_ADDR": "localhost", "MASTER_PORT": "23456",
		"RANK": "0", "WORLD_SIZE": "3", "PET_MASTER_ADDR": "localhost", "PET_MASTER_PORT": "23456", "PET_NNODES": "3", "PET_NODE_RANK": "0", "PET_NPROC_PER_NODE": "auto"}
	pyTorchWorker = with(pyTorchMaster, "HOSTNAME=gpt-worker-1", "RANK=2", "PET_NODE_RANK=2", "MASTER_ADDR=gpt-master-0", "PET_MASTER_ADDR=gpt-master-0")
)

func TestDetectPods(t *testing.T) {
	requireDetected(t, []detection{
		{"Indexed Job", indexedJob, hostsFile("allreduce-2", "mesh.ns.svc.cluster.local"),
			Launch{"kubernetes", 2, 4, 0, 1, 2, 4, "allreduce.mesh.ns.svc.cluster.local"}},
		{"Indexed Job with its whole name as host name", with(indexedJob, "HOSTNAME=allreduce-2.mesh.ns.svc.cluster.local"), hostsFile("allreduce-2", "mesh.ns.svc.cluster.local"),
			Launch{"kubernetes", 2, 4, 0, 1, 2, 4, "allreduce.mesh.ns.svc.cluster.local"}},
		{"Indexed Job without a service", indexedJob, hostsFile("allreduce-2", ""), Launch{"kubernetes", 2, 4, 0, 1, 2, 4, ""}},
		{"Indexed Job by WORLD_SIZE", with(indexedJob, "GOCCL_SIZE=", "WORLD_SIZE=4"), nil, Launch{"kubernetes", 2, 4, 0, 1, 2, 4, ""}},
		{"Indexed Job of one", with(indexedJob, "GOCCL_SIZE=1", "JOB_COMPLETION_INDEX=0"), nil, Launch{"kubernetes", 0, 1, 0, 1, 0, 1, ""}},
		{"Indexed Job, forced", with(indexedJob, "RANK=9", "WORLD_SIZE=9", "GOCCL_LAUNCHER=none"), nil, Launch{"none", 0, 1, 0, 1, 0, 1, ""}},
		{"JobSet", jobSet, hostsFile("bench-ranks-0-1", "bench.ns.svc.cluster.local"), Launch{"kubernetes", 1, 2, 0, 1, 1, 2, "bench-ranks-0.bench.ns.svc.cluster.local"}},
		{"TrainJob", trainJob, nil, Launch{"pet", 3, 4, 0, 1, 3, 4, ""}},
		{"TrainJob under torchrun", with(trainJob, "TORCHELASTIC_RUN_ID=none", "RANK=7", "WORLD_SIZE=8", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "PET_NPROC_PER_NODE=2"), nil,
			Launch{"torchrun", 7, 8, 1, 2, -1, -1, "none@:."}},
		{"PyTorchJob's master", pyTorchMaster, nil, Launch{"env", 0, 3, -1, -1, -1, -1, ""}},
		{"PyTorchJob's worker", pyTorchWorker, nil, Launch{"env", 2, 3, -1, -1, -1, -1, ""}},
		{"mpirun in a pod of an Indexed Job", with(indexedJob, "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4"), nil, Launch{"openmpi", 1, 4, -1, -1, -1, -1, ""}},
		{"bench's own ranks in a pod", with(indexedJob, "GOCCL_RANK=1", "GOCCL_SIZE=2"), nil, Launch{"goccl", 1, 2, -1, -1, -1, -1, ""}},
		{"one node by PET", map[string]string{"PET_NNODES": "1"}, nil, Launch{"none", 0, 1, 0, 1, 0, 1, ""}},
	})
}

// What looks like one of several, but cannot be, names the variable; it is never rank 0 of 1.
func TestDetectPodsRejects(t *testing.T) {
	for _, tc := range []struct {
		name string
		env  map[string]string
		want []string
	}{
		{"no size", with(indexedJob, "GOCCL_SIZE="), []string{"JOB_COMPLETION_INDEX=2", "GOCCL_SIZE", "GOCCL_LAUNCHER=none"}},
		{"no number", with(indexedJob, "JOB_COMPLETION_INDEX=x"), []string{"JOB_COMPLETION_INDEX=x"}},
		{"an index beyond the size", with(indexedJob, "GOCCL_SIZE=2"), []string{"JOB_COMPLETION_INDEX=2", "GOCCL_SIZE=2"}},
		{"two sizes", with(indexedJob, "WORLD_SIZE=3"), []string{"WORLD_SIZE=3", "GOCCL_LAUNCHER"}},
		{"no number of nodes", with(trainJob, "PET_NNODES="), []string{"PET_NNODES is not set", "PET_NODE_RANK=3"}},
		{"no node", with(trainJob, "PET_NODE_RANK="), []string{"PET_NODE_RANK is not set", "PET_NNODES=4"}},
		{"elastic", with(trainJob, "PET_NNODES=1:4"), []string{"PET_NNODES=1:4", "torchrun"}},
		{"a node beyond", with(trainJob, "PET_NNODES=2"), []string{"PET_NODE_RANK=3", "PET_NNODES=2"}},
		{"several in a pod, and no torchrun", with(trainJob, "PET_NPROC_PER_NODE=8"), []string{"PET_NPROC_PER_NODE=8", "torchrun"}},
		{"several in a PyTorchJob's pod, and no torchrun", with(pyTorchWorker, "PET_NPROC_PER_NODE=2", "WORLD_SIZE=6"), []string{"PET_NPROC_PER_NODE=2", "RANK=2"}},
		{"PyTorchJob without a rank", with(pyTorchWorker, "RANK=", "PET_NODE_RANK=", "PET_NNODES="), []string{"RANK is not set", "WORLD_SIZE=3"}},
		{"PyTorchJob without a size", with(pyTorchWorker, "WORLD_SIZE="), []string{"WORLD_SIZE is not set", "RANK=2"}},
		{"kubernetes forced outside", map[string]string{"GOCCL_LAUNCHER": "kubernetes"}, []string{"JOB_COMPLETION_INDEX"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := detect(varsOf(tc.env, nil))
			require.ErrorIs(t, err, Argument)
			for _, w := range tc.want {
				require.ErrorContains(t, err, w)
			}
		})
	}
}

// Where pods meet: at the pod with index 0 of their service, at the trainer's master, and on the master at all interfaces.
func TestWherePodsMeet(t *testing.T) {
	at := func(env map[string]string, files map[string][]byte) ([]string, error) {
		v := varsOf(env, files)
		l, err := detect(v)
		require.NoError(t, err)
		m := &joinConfig{job: l.Job, rank: l.Rank, size: l.Size}
		if err := m.locate(t.Context(), v, l); err != nil {
			return nil, err
		}
		p, err := m.find()
		return p.addrs, err
	}
	addrs, err := at(indexedJob, hostsFile("allreduce-2", "mesh.ns.svc.cluster.local"))
	require.NoError(t, err)
	for _, a := range addrs {
		require.Regexp(t, `^allreduce-0\.mesh\.ns\.svc\.cluster\.local:3\d{4}$`, a)
	}
	addrs, err = at(trainJob, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"gpt-node-0-0.gpt:29400"}, addrs)
	addrs, err = at(with(trainJob, "PET_MASTER_ADDR=", "PET_RDZV_ENDPOINT=gpt-0:29500"), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"gpt-0:29500"}, addrs)
	addrs, err = at(pyTorchWorker, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"gpt-master-0:23456"}, addrs)
	for _, tc := range []struct {
		env   map[string]string
		files map[string][]byte
		want  string
	}{
		{indexedJob, hostsFile("allreduce-2", ""), "give the pods a subdomain"},
		{indexedJob, hostsFile("other-1", "mesh"), "give the pods a subdomain"},
		{with(indexedJob, "HOSTNAME=other"), hostsFile("other", "mesh"), "give the pods a subdomain"},
		{with(trainJob, "PET_MASTER_ADDR="), nil, "PET_RDZV_ENDPOINT"},
	} {
		_, err := at(tc.env, tc.files)
		require.ErrorIs(t, err, Argument)
		require.ErrorContains(t, err, tc.want)
		require.ErrorContains(t, err, "GOCCL_ROOT")
	}
}

// A PyTorchJob's master listens where its workers reach it, though MASTER_ADDR says localhost there; outside of pods
// localhost stays what it is.
func TestMasterListens(t *testing.T) {
	for _, tc := range []struct {
		env map[string]string
		all bool
	}{
		{pyTorchMaster, true},
		{map[string]string{"RANK": "0", "WORLD_SIZE": "3", "MASTER_ADDR": "localhost"}, false},
		{with(pyTorchMaster, "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=3"), false},
	} {
		v := varsOf(with(tc.env, "MASTER_PORT="+port(t)), nil)
		l, err := detect(v)
		require.NoError(t, err)
		m := &joinConfig{size: l.Size}
		require.NoError(t, m.locate(t.Context(), v, l))
		listener, _, err := m.listen(t.Context())
		require.NoError(t, err)
		require.Equal(t, tc.all, addrOf(listener.Addr()).IsUnspecified())
		listener.Close()
	}
}

// Rank 0 waits for its own name, and a name that never comes is an error that has it.
func TestOwnNameIsWaitedFor(t *testing.T) {
	const own = "10.0.0.7"
	var asked atomic.Int32
	lookup := func(context.Context, string) (ground, error) {
		if asked.Add(1) < 3 {
			return ground{}, fault(Argument, "no address: %v", &net.DNSError{Err: "no such host", Name: "pod-0.mesh", IsNotFound: true})
		}
		return ground{on: own}, nil
	}
	at, err := waitForName(within(t, long), "pod-0.mesh", lookup)
	require.NoError(t, err)
	require.Equal(t, ground{on: own}, at)

	asked.Store(-1 << 30)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err = waitForName(ctx, "pod-0.mesh", lookup)
	require.ErrorIs(t, err, Timeout)
	require.NotErrorIs(t, err, Argument)
	require.ErrorContains(t, err, "rank 0's own name pod-0.mesh")

	_, err = waitForName(t.Context(), "other", func(context.Context, string) (ground, error) { return ground{}, fault(Argument, "no name") })
	require.ErrorIs(t, err, Argument, "what is no question of time is not waited for")
}

// Whatever a pod's hosts file and variables hold, its ranks meet at a host, or it is said why not.
func FuzzPod(f *testing.F) {
	f.Add("10.0.0.7 job-1.svc.ns job-1\n", "job-1", "c1", "29500")
	f.Add("# job-1.svc\n::1 localhost\n", "job-1.svc", "[::1]", "+1")
	f.Fuzz(func(t *testing.T, hosts, name, host, port string) {
		v := &vars{getenv: func(n string) string {
			return map[string]string{"HOSTNAME": name, "MASTER_ADDR": host, "MASTER_PORT": port}[n]
		},
			readFile: func(string) ([]byte, error) { return []byte(hosts), nil }}
		if base, domain, ok := v.podName(1); ok && (domain == "" || strings.ContainsAny(base+domain, "\n")) {
			t.Fatalf("%q %q", base, domain)
		}
		if host, port, err := masterOf(v, "MASTER_ADDR", "MASTER_PORT").read(); err == nil {
			require.Nil(t, (&joinConfig{size: 2}).at(net.JoinHostPort(host, port)))
		}
	})
}
