package boot

import (
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/goccl/goccl/internal/environ"
	"github.com/goccl/goccl/internal/plain"
)

// hasPlain reports RANK or WORLD_SIZE. In the pods of a job that has other variables for the rank, WORLD_SIZE is what
// whoever wrote the job says of the size.
func hasPlain(v *vars) bool {
	return v.has("RANK") || v.has("WORLD_SIZE") && !hasPET(v) && !v.has("JOB_COMPLETION_INDEX")
}

// readPlain reads RANK and WORLD_SIZE, which many launchers for training set, Kubeflow's PyTorchJob among them.
func readPlain(v *vars) Launch {
	if !v.has("LOCAL_RANK") {
		v.onePerPod("RANK")
	}
	return ranksOf(v)
}

// hasPET reports a pod whose torchrun would be told by PET_ variables which of how many nodes it is on, as Kubeflow's
// trainer and PyTorchJob tell it.
func hasPET(v *vars) bool {
	return v.has("PET_NODE_RANK") || v.has("PET_NNODES") && v.getenv("PET_NNODES") != "1"
}

// readPET reads the PET_ variables of a process that no torchrun has started: it is the only one of its pod.
func readPET(v *vars) Launch {
	if n := v.getenv("PET_NNODES"); strings.Contains(n, ":") {
		v.fail("PET_NNODES=%s is a range, from which only torchrun can choose: start this process with torchrun, or set PET_NNODES to one number, or GOCCL_LAUNCHER=none to run alone", plain.Clip(n))
	}
	v.onePerPod("PET_NODE_RANK")
	return pod(v.number("PET_NODE_RANK", "PET_NNODES"), v.number("PET_NNODES", "PET_NODE_RANK"),
		environ.JobName.Text(v.getenv))
}

// onePerPod refuses pods in which torchrun would start several processes: no variable tells the
// processes of a pod apart.
func (v *vars) onePerPod(rank string) {
	if n, err := strconv.Atoi(v.getenv("PET_NPROC_PER_NODE")); err == nil && n > 1 {
		v.fail("PET_NPROC_PER_NODE=%d, but torchrun has not started this process, so %s=%s describes the pod, not one of its %d ranks: start the program with torchrun, or set PET_NPROC_PER_NODE=1, or GOCCL_LAUNCHER=none to run alone",
			n, rank, plain.Clip(v.getenv(rank)), n)
	}
}

// readKubernetes reads what pods of an Indexed Job have, those of a JobSet among them. Nothing says how many there are,
// so whoever wrote the job has to.
func readKubernetes(v *vars) Launch {
	rank, size := v.maybe("JOB_COMPLETION_INDEX"), v.maybe(environ.Size.Name)
	if !v.has(environ.Size.Name) {
		if size = v.maybe("WORLD_SIZE"); !v.has("WORLD_SIZE") {
			v.fail("JOB_COMPLETION_INDEX=%d: this is a pod of an Indexed Job, but the number of pods is unknown; set GOCCL_SIZE in the pods to the Job's completions, or GOCCL_LAUNCHER=none to run alone", rank)
		}
	}
	job := environ.JobName.Text(v.getenv)
	if base, domain, ok := v.podName(rank); ok && job == "" {
		job = base + domain
	}
	return pod(rank, size, job)
}

// pod is the launch of a rank that has a pod for itself.
func pod(rank, size int, job string) Launch {
	return Launch{Rank: rank, Size: size, Local: 0, Locals: 1, Node: rank, Nodes: size, Job: job}
}

// podName splits the name that a pod of an Indexed Job has in the network, base-INDEX and the domain of the headless
// service: kubelet writes it into the pod's hosts file. It is not ok without such a service.
func (v *vars) podName(index int) (base, domain string, ok bool) {
	name := v.getenv("HOSTNAME")
	if name == "" {
		name, _ = os.Hostname()
	}
	name, _, _ = strings.Cut(name, ".") // setHostnameAsFQDN
	base, ok = strings.CutSuffix(name, "-"+strconv.Itoa(index))
	text, err := v.readFile("/etc/hosts")
	if !ok || err != nil {
		return "", "", false
	}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		for _, word := range strings.Fields(line) {
			if domain, ok := strings.CutPrefix(word, name+"."); ok && domain != "" {
				return base, "." + domain, true
			}
		}
	}
	return "", "", false
}

// amongPods is the meeting of the pods of an Indexed Job: at that with index 0.
func (m *joinConfig) amongPods(v *vars) bool {
	base, domain, ok := v.podName(m.rank)
	if ok {
		m.derived([]string{base + "-0" + domain}, 0)
	}
	return ok
}

// atMaster is the meeting at the address that a launcher for training gives. In a pod it says localhost on the master,
// which the others reach from elsewhere.
func (m *joinConfig) atMaster(v *vars, l Launch, at master) error {
	host, port, err := at.read()
	if err != nil {
		return err
	}
	inPod := v.has("KUBERNETES_SERVICE_HOST") || v.has("PET_NNODES")
	if m.rank == 0 && inPod && (host == "localhost" || host == "127.0.0.1") && (l.Locals < 0 || l.Locals < l.Size) {
		host = ""
	}
	return m.at(net.JoinHostPort(host, port))
}

// petMaster is where the PET_ variables say that the ranks meet.
func petMaster(v *vars) (at master, ok bool) {
	if v.has("PET_MASTER_ADDR", "PET_MASTER_PORT") {
		return masterOf(v, "PET_MASTER_ADDR", "PET_MASTER_PORT"), true
	}
	if v.has("MASTER_ADDR", "MASTER_PORT") {
		return masterOf(v, "MASTER_ADDR", "MASTER_PORT"), true
	}
	const both = "PET_RDZV_ENDPOINT"
	host, port, err := net.SplitHostPort(v.getenv(both))
	return master{both, both, host, port}, err == nil
}
