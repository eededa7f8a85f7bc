#include "driver/plan_json.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "runtime/plan/device.h"
#include "runtime/plan/plan_types.h"
#include "runtime/plan/tensor_layout.h"

namespace oriel::driver {

namespace {

using Json = nlohmann::ordered_json;

Json tensorJson(const plan::Tensor& tensor) {
  const runtime::TensorSpec spec = runtime::FromPlan(tensor);
  return {{"dtype", std::string(runtime::DTypeName(spec.dtype))}, {"shape", spec.shape}};
}

Json provenanceJson(const plan::Provenance& from) {
  Json flags = Json::array();
  for (const std::string& flag : from.flags()) flags.push_back(flag);
  return {{"model_path", from.model_path()},
          {"model_sha256", from.model_sha256()},
          {"compiler_version", from.compiler_version()},
          {"flags", std::move(flags)},
          {"recipe", from.recipe()},
          {"strategy", from.strategy()}};
}

Json deviceJson(const plan::Plan& plan) {
  Json architectures = Json::array();
  for (const std::string& name : plan.device().architectures()) architectures.push_back(name);
  return {{"kind", std::string(runtime::DeviceKind(plan))},
          {"architectures", std::move(architectures)}};
}

Json gridJson(const plan::Grid& grid) {
  Json axes = Json::object(), mesh = Json::object(), modules = Json::object();
  for (const plan::AtomicAxis& axis : grid.axes()) axes[axis.name()] = axis.size();
  for (const plan::MeshAxis& axis : grid.mesh()) {
    Json& of = axis.module().empty() ? mesh : modules[axis.module()];
    Json& names = of[axis.name()] = Json::array();
    for (const std::string& name : axis.axes()) names.push_back(name);
  }
  return {{"first_rank", grid.first_rank()},
          {"axes", std::move(axes)},
          {"mesh", std::move(mesh)},
          {"module_meshes", std::move(modules)}};
}

Json learningRateJson(const plan::LearningRate& rate) {
  const char* kind = rate.kind() == plan::LearningRate::LINEAR   ? "linear"
                     : rate.kind() == plan::LearningRate::COSINE ? "cosine"
                                                                 : "constant";
  return {{"kind", kind},
          {"peak", rate.peak()},
          {"warmup_steps", rate.warmup_steps()},
          {"hold_steps", rate.hold_steps()},
          {"total_steps", rate.total_steps()},
          {"final_ratio", rate.final_ratio()}};
}

Json initialJson(const plan::InitialValue& initial) {
  if (initial.has_constant()) return {{"constant", initial.constant()}};
  if (initial.has_normal()) {
    return {{"normal", {{"mean", initial.normal().mean()}, {"std", initial.normal().deviation()}}},
            {"seed", initial.seed()}};
  }
  if (initial.has_uniform()) {
    return {{"uniform", {{"low", initial.uniform().low()}, {"high", initial.uniform().high()}}},
            {"seed", initial.seed()}};
  }
  return {{"file", initial.file()}, {"tensor", initial.tensor()}};
}

Json parametersJson(const plan::Plan& plan, const runtime::PlanStats& stats) {
  Json tensors = Json::array();
  for (const plan::Parameter& parameter : plan.parameters()) {
    Json tensor = {{"name", parameter.name()}};
    tensor.update(tensorJson(parameter.global()));
    if (!parameter.padded_shape().empty()) {
      tensor["padded_shape"] = runtime::PaddedShape(parameter);
    }
    if (!parameter.padded_groups().empty()) {
      tensor["padded_groups"] = runtime::PaddedGroups(parameter);
    }
    if (parameter.has_part_of()) {
      tensor["part_of"] = {{"tensor", parameter.part_of().tensor()},
                           {"shape", runtime::ShapeInFiles(parameter)},
                           {"start", parameter.part_of().start()}};
    }
    tensor["trainable"] = parameter.trainable();
    tensor["initial"] = initialJson(parameter.initial());
    tensors.push_back(std::move(tensor));
  }
  return {{"total", stats.parameters},
          {"trainable", stats.trainable_parameters},
          {"frozen", stats.parameters - stats.trainable_parameters},
          {"tensors", std::move(tensors)}};
}

Json memoryJson(const runtime::MemoryStats& memory) {
  constexpr size_t kShown = 20;
  Json parts = Json::object(), holders = Json::array(), stash = Json::array();
  for (const auto& [part, bytes] : memory.parts) parts[runtime::MemoryPartName(part)] = bytes;
  for (size_t i = 0; i < std::min(kShown, memory.holders.size()); ++i) {
    const runtime::MemoryHolder& holder = memory.holders[i];
    holders.push_back({{"part", runtime::MemoryPartName(holder.part)},
                       {"name", holder.name},
                       {"bytes", holder.bytes},
                       {"copies", holder.copies}});
  }
  for (const runtime::StashStats& each : memory.stash) {
    stash.push_back({{"segment", each.segment},
                     {"bytes_per_microbatch", each.bytes},
                     {"microbatches", each.microbatches}});
  }
  return {{"peak_bytes", memory.peak_bytes}, {"segment", memory.segment},
          {"microbatch", memory.microbatch}, {"instruction", memory.instruction},
          {"parts", std::move(parts)},       {"largest", std::move(holders)},
          {"stash", std::move(stash)}};
}

Json programJson(const plan::Program& from, const runtime::ProgramStats& program) {
  std::map<std::string, double> predicted;
  for (const plan::Segment& segment : from.segments()) {
    predicted[segment.name()] = segment.predicted_ms();
  }
  Json stages = Json::array();
  for (const std::string& stage : from.stages()) stages.push_back(stage);
  Json segments = Json::array();
  for (const runtime::SegmentStats& segment : program.segments) {
    Json collectives = Json::array();
    for (const runtime::CollectiveStats& each : segment.collectives_by_kind) {
      collectives.push_back({{"kind", each.kind},
                             {"axes", each.axes},
                             {"stream", each.stream},
                             {"ranks", each.ranks},
                             {"count", each.count},
                             {"tensors", each.tensors},
                             {"bytes", each.bytes},
                             {"sent_bytes", each.sent_bytes}});
    }
    Json started = Json::array();
    for (const runtime::StartedStats& each : segment.started) {
      started.push_back({{"kind", each.kind},
                         {"axes", each.axes},
                         {"stream", each.stream},
                         {"instruction", each.instruction},
                         {"wait", each.wait},
                         {"tensors", each.tensors},
                         {"sent_bytes", each.sent_bytes}});
    }
    segments.push_back({{"name", segment.name},
                        {"runs_per_step", segment.runs_per_step},
                        {"predicted_ms", predicted.at(segment.name)},
                        {"instructions", segment.instructions},
                        {"kernels", segment.kernels},
                        {"collectives", segment.collectives},
                        {"started", std::move(started)},
                        {"collective_bytes", segment.collective_bytes},
                        {"sent_bytes", segment.sent_bytes},
                        {"collectives_by_kind", std::move(collectives)}});
  }
  Json volume = Json::array();
  for (const runtime::AxisVolume& each : program.volume) {
    volume.push_back({{"axes", each.axes},
                      {"segment", each.segment},
                      {"ranks", each.ranks},
                      {"sent_bytes", each.sent_bytes},
                      {"counts", each.counts}});
  }
  Json json = {{"first_rank", program.first_rank},
               {"rank_count", program.rank_count},
               {"stages", std::move(stages)},
               {"arena_bytes", program.arena_bytes},
               {"memory", memoryJson(program.memory)},
               {"bytes_by_kind", program.bytes_by_kind},
               {"state_bytes", program.memory.state_bytes},
               {"buffers_by_kind", program.buffers_by_kind},
               {"instructions_per_step", program.instructions_per_step},
               {"collective_bytes_per_step", program.collective_bytes_per_step},
               {"sent_bytes_per_step", program.sent_bytes_per_step},
               {"segments", std::move(segments)},
               {"volume", std::move(volume)}};
  if (!program.stages.empty()) {
    json["grid"] = program.grid;
    json["stage_numbers"] = program.stages;
    json["copies_by_kind"] = program.copies_by_kind;
  }
  return json;
}

Json channelJson(const runtime::ChannelStats& channel) {
  return {{"name", channel.name},
          {"source_grid", channel.source_grid},
          {"target_grid", channel.target_grid},
          {"segment", channel.segment},
          {"runs_per_step", channel.runs_per_step},
          {"bytes", channel.bytes},
          {"bytes_per_step", channel.bytes_per_step}};
}

}  // namespace

std::string planJson(const plan::Plan& plan, const runtime::PlanStats& stats) {
  const plan::Training& training = plan.training();
  Json grids = Json::array(), inputs = Json::array(), programs = Json::array();
  for (const plan::Grid& grid : plan.grids()) grids.push_back(gridJson(grid));
  for (const plan::Input& input : plan.inputs()) {
    Json entry = {{"name", input.name()}};
    entry.update(tensorJson(input.microbatch()));
    entry["labels"] = input.labels();
    if (!input.member().empty()) entry["member"] = input.member();
    if (input.has_images()) {
      entry["images"] = {{"per_sample", input.images().per_sample()},
                         {"rows", input.images().rows()},
                         {"count", input.images().count()}};
    }
    if (input.image_count()) entry["image_count"] = true;
    if (input.sample_bits()) entry["sample_bits"] = true;
    inputs.push_back(std::move(entry));
  }
  for (size_t i = 0; i < stats.programs.size(); ++i) {
    programs.push_back(programJson(plan.programs(static_cast<int>(i)), stats.programs[i]));
  }
  Json json = {{"model", plan.model_name()},
               {"provenance", provenanceJson(plan.provenance())},
               {"device", deviceJson(plan)},
               {"world", plan.world_size()},
               {"grids", std::move(grids)},
               {"batch",
                {{"global", training.global_batch()},
                 {"micro", training.micro_batch()},
                 {"microbatches", training.microbatches()},
                 {"data_parallel", training.data_parallel()}}},
               {"steps", training.steps()},
               {"seed", training.seed()},
               {"learning_rate", learningRateJson(training.learning_rate())},
               {"inputs", std::move(inputs)},
               {"parameters", parametersJson(plan, stats)},
               {"programs", std::move(programs)}};
  if (plan.placement_block() > 0) json["placement_block"] = plan.placement_block();
  if (!stats.channels.empty()) {
    Json& channels = json["channels"] = Json::array();
    for (const runtime::ChannelStats& channel : stats.channels) {
      channels.push_back(channelJson(channel));
    }
  }
  // A name that is not UTF-8 must not end the process.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace oriel::driver
